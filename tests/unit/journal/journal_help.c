/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls replace the C library's in every test of this folder; without a rig
 * they do the same as those.
 */
#include "journal_help.h"

#include "base/file.h"
#include "journal/journal_tap.h"

const enum journal_sync policies[] = { JOURNAL_ALWAYS, JOURNAL_EVERYSEC,
                                       JOURNAL_NO };

struct disk disk = { .mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                     .cond = PTHREAD_COND_INITIALIZER };

uint64_t
size_of(int fd)
{
    struct stat stat;

    return fstat(fd, &stat) == 0 ? (uint64_t)stat.st_size : 0;
}

static struct disk_file *
find_file(int fd)
{
    struct stat stat;

    if (fstat(fd, &stat) == 0) {
        for (size_t i = 0; i < disk.count; i++) {
            if (disk.files[i].inode == stat.st_ino) {
                return &disk.files[i];
            }
        }
    }
    return NULL;
}

/* Whether the journal has heard of all that failed. */
static bool
is_known(void)
{
    struct journal_status status;

    journal_get_status(disk.journal, &status);
    return status.write_errors + status.sync_errors == disk.failed;
}

/* Holds the call up, then says whether it fails. Under the disk's mutex. */
static bool
enter_call(enum disk_call call, struct disk_file *file)
{
    if (file->suspect && is_known() && file->allowed[call]-- == 0) {
        disk.wrong = "a suspect file was touched again";
    }
    disk.inside[call]++;
    pthread_cond_broadcast(&disk.cond);
    while (disk.hold[call]) {
        pthread_cond_wait(&disk.cond, &disk.mutex);
    }
    disk.inside[call]--;
    if (disk.nth[call] == 0) {
        return false;
    }
    if (--disk.nth[call] > 0) {
        return false;
    }
    disk.nth[call] = disk.for_good;
    disk.fired = true;
    disk.failed++;
    /* When the journal learns of a failure, the other thread may already be in
     * its next call; after a failed write there is the last sync, too. */
    file->allowed[DISK_WRITE] = call == DISK_SYNC && !file->suspect ? 1 : 0;
    file->allowed[DISK_SYNC] = call == DISK_WRITE && !file->suspect ? 2 : 0;
    file->suspect = true;
    errno = EIO;
    return true;
}

int
fdatasync(int fd)
{
    struct disk_file *file;
    uint64_t size;
    bool fails = false;

    if (disk.journal == NULL) {
        return (int)syscall(SYS_fdatasync, fd);
    }
    pthread_mutex_lock(&disk.mutex);
    file = find_file(fd);
    if (file == NULL) {
        disk.wrong = "an unknown file was synced";
    } else {
        size = size_of(fd);
        fails = enter_call(DISK_SYNC, file);
        if (!fails) {
            file->synced = size;
        }
    }
    pthread_mutex_unlock(&disk.mutex);
    return fails ? -1 : 0;
}

/* Before a write; true: it fails. */
static bool
enter_write(int fd)
{
    struct disk_file *file;
    bool fails = false;

    pthread_mutex_lock(&disk.mutex);
    file = find_file(fd);
    if (file != NULL) {
        fails = enter_call(DISK_WRITE, file);
        for (struct disk_file *f = disk.files; f < file; f++) {
            if (!f->suspect && !f->left && f->begin >= disk.base &&
                f->synced < size_of(f->fd)) {
                disk.wrong = "written to before the last file was synced";
            }
        }
    }
    pthread_mutex_unlock(&disk.mutex);
    return fails;
}

/* A write that fails leaves some of its bytes behind. Without a journal this is
 * the system's own: a test whose program has this file, and forks, must not
 * find the mutex locked in its child. */
ssize_t
write(int fd, const void *data, size_t len)
{
    if (disk.journal != NULL && enter_write(fd)) {
        (void)!syscall(SYS_write, fd, data, len / 2);
        errno = EIO;
        return -1;
    }
    return syscall(SYS_write, fd, data, len);
}

ssize_t
writev(int fd, const struct iovec *iov, int count)
{
    if (enter_write(fd)) {
        (void)!syscall(SYS_write, fd, iov->iov_base, iov->iov_len / 2);
        errno = EIO;
        return -1;
    }
    return syscall(SYS_writev, fd, iov, count);
}

void
disk_hold(enum disk_call call, bool hold)
{
    pthread_mutex_lock(&disk.mutex);
    disk.hold[call] = hold;
    pthread_cond_broadcast(&disk.cond);
    pthread_mutex_unlock(&disk.mutex);
}

void
disk_fail(enum disk_call call, unsigned nth, bool for_good)
{
    pthread_mutex_lock(&disk.mutex);
    disk.nth[call] = nth;
    disk.for_good = for_good;
    pthread_mutex_unlock(&disk.mutex);
}

bool
disk_heal(void)
{
    bool fired;

    pthread_mutex_lock(&disk.mutex);
    fired = disk.fired;
    disk.fired = false;
    disk.nth[DISK_WRITE] = disk.nth[DISK_SYNC] = 0;
    pthread_mutex_unlock(&disk.mutex);
    return fired;
}

bool
disk_is_inside(enum disk_call call)
{
    bool inside;

    pthread_mutex_lock(&disk.mutex);
    inside = disk.inside[call] > 0;
    pthread_mutex_unlock(&disk.mutex);
    return inside;
}

/* Where the log would end if the power failed now: the base, and whole groups
 * that were synced behind it without a gap. Under the disk's mutex. */
static uint64_t
position_on_disk(void)
{
    uint64_t end = disk.base;

    for (size_t i = 0; i < disk.count; i++) {
        struct disk_file *file = &disk.files[i];
        uint64_t offset = file->groups_end;
        struct group group;
        struct slice data;
        char *bytes;

        if (file->gone) {
            continue;
        }
        if (file->begin > end) {
            break;
        }
        bytes = mmap(NULL, file->synced, PROT_READ, MAP_SHARED, file->fd, 0);
        assert_true(bytes != MAP_FAILED);
        data = (struct slice){ bytes, file->synced };
        while (group_read(data, file->key, offset, &group) == GROUP_OK) {
            offset = group.end;
        }
        (void)munmap(bytes, file->synced);
        file->groups_end = offset;
        offset += file->begin - GROUP_FIRST_LINE_BYTES;
        end = offset > end ? offset : end;
    }
    return end;
}

/* ---- the rig ------------------------------------------------------------- */

uint64_t
released(const struct rig *rig)
{
    return atomic_load(journal_released(rig->journal));
}

bool
flush(const struct rig *rig)
{
    enum journal_flushed flushed = JOURNAL_FLUSHES;

    until((flushed = journal_flush(rig->journal)) != JOURNAL_FLUSHES);
    return flushed == JOURNAL_FLUSHED;
}

struct journal_status
status_of(const struct rig *rig)
{
    struct journal_status status;

    journal_get_status(rig->journal, &status);
    return status;
}

static void
on_moved(void *ctx)
{
    struct rig *rig = ctx;

    if (rig->always) {
        uint64_t now = released(rig);

        pthread_mutex_lock(&disk.mutex);
        if (now != UINT64_MAX && now > position_on_disk()) {
            disk.wrong = "released, and not on the disk";
        }
        pthread_mutex_unlock(&disk.mutex);
    }
    rig->moved++;
    while (rig->hangs) {
        rig->hanging = true;
        (void)nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    }
}

static void
on_event(void *ctx)
{
    ((struct rig *)ctx)->events++;
}

static void
on_tapped(void *ctx)
{
    ((struct rig *)ctx)->tapped++;
}

/* An increment as loop 0 makes it. */
static struct journal_file
make_file(struct rig *rig)
{
    char line[GROUP_FIRST_LINE_BYTES];
    struct group_file first = { .key = 0x1234567 + rig->numbers,
                                .created_ms = 1,
                                .run_id = "0123456789012345678901234567890"
                                          "123456789" };
    int fd = memfd_create("increment", MFD_CLOEXEC);
    struct stat stat;

    assert_true(fd >= 0);
    group_write_first_line(&first, line);
    assert_int_equal(sizeof(line), write(fd, line, sizeof(line)));
    assert_int_equal(0, fstat(fd, &stat));
    pthread_mutex_lock(&disk.mutex);
    assert_true(disk.count < FILES_MAX);
    disk.files[disk.count++] = (struct disk_file){ .fd = dup(fd),
                                                   .inode = stat.st_ino,
                                                   .key = first.key,
                                                   .begin = UINT64_MAX,
                                                   .synced = sizeof(line),
                                                   .groups_end = sizeof(line) };
    pthread_mutex_unlock(&disk.mutex);
    return (struct journal_file){ fd, first.key, ++rig->numbers };
}

uint64_t
set_target(struct rig *rig, enum journal_target how, uint64_t position,
           uint64_t *ret_sequence)
{
    struct journal_file file = make_file(rig);
    uint64_t sequence = ret_sequence != NULL ? *ret_sequence : 0;

    pthread_mutex_lock(&disk.mutex);
    for (size_t i = 0; i + 1 < disk.count; i++) {
        disk.files[i].left = disk.files[i].left || how == JOURNAL_REBASE ||
                             status_of(rig).faulted;
    }
    journal_set_target(rig->journal, how, &file, &position, &sequence);
    disk.files[file.number - 1].begin = position;
    if (how == JOURNAL_RESUME || how == JOURNAL_BUILD) {
        disk.base = position;
    }
    pthread_mutex_unlock(&disk.mutex);
    if (ret_sequence != NULL) {
        *ret_sequence = sequence;
    }
    return position;
}

static void
leave_all(uint64_t position)
{
    for (size_t i = 0; i < disk.count; i++) {
        disk.files[i].left = disk.files[i].gone = true;
    }
    disk.base = position;
}

void
hold(struct rig *rig, uint64_t position, uint64_t sequence)
{
    pthread_mutex_lock(&disk.mutex);
    leave_all(position);
    journal_hold(rig->journal, position, sequence);
    pthread_mutex_unlock(&disk.mutex);
}

bool
end_hold(struct rig *rig, uint64_t position)
{
    struct journal_file file;
    bool done;

    file = make_file(rig);
    pthread_mutex_lock(&disk.mutex);
    disk.base = position;
    disk.files[file.number - 1].begin = position;
    done = journal_end_hold(rig->journal, &file);
    pthread_mutex_unlock(&disk.mutex);
    if (!done) {
        file_close(file.fd);
    }
    return done;
}

void
base_done(struct rig *rig, uint64_t position, uint64_t sequence)
{
    pthread_mutex_lock(&disk.mutex);
    disk.base = position;
    pthread_mutex_unlock(&disk.mutex);
    journal_base_done(rig->journal, position, sequence);
}

struct rig *
rig_new(enum journal_sync sync)
{
    struct rig *rig = mem_zalloc(sizeof(*rig));
    struct journal_hooks hooks = { on_moved, on_event, on_tapped, rig };

    disk.count = 0;
    disk.base = 0;
    disk.wrong = NULL;
    disk.fired = false;
    disk.failed = 0;
    memset(disk.hold, 0, sizeof(disk.hold));
    memset(disk.nth, 0, sizeof(disk.nth));
    rig->journal = journal_new(&hooks);
    disk.journal = rig->journal;
    journal_set_sync(rig->journal, sync);
    rig->always = sync == JOURNAL_ALWAYS;
    return rig;
}

struct rig *
rig_resumed(enum journal_sync sync, uint64_t position)
{
    struct rig *rig = rig_new(sync);

    (void)set_target(rig, JOURNAL_RESUME, position, NULL);
    return rig;
}

void
rig_free(struct rig *rig)
{
    const char *wrong;

    journal_free(rig->journal);
    disk.journal = NULL;
    wrong = disk.wrong;
    for (size_t i = 0; i < disk.count; i++) {
        (void)close(disk.files[i].fd);
    }
    mem_free(rig);
    if (wrong != NULL) {
        fail_msg("%s", wrong);
    }
}

/* ---- what is appended ---------------------------------------------------- */

uint64_t
mix(uint64_t x)
{
    return test_random(&x);
}

static struct recipe
recipe_of(uint32_t source, uint32_t number)
{
    uint64_t seed = mix((uint64_t)source << 32 | number);

    return (struct recipe){
        .effects = 1 + (unsigned)(seed % 4),
        .txn = seed >> 8 & 1,
        .item = seed % 97 == 0 ? 20000 : 16 + seed % 50,
        .seed = seed,
    };
}

static uint32_t
db_of(const struct recipe *recipe, unsigned i)
{
    return recipe->seed >> 16 & 7 ? 0 : (uint32_t)mix(recipe->seed + i) % 3;
}

static struct slice
item_of(const struct recipe *recipe, const struct entry *entry, unsigned i,
        char *buffer)
{
    memset(buffer, 'x', recipe->item);
    buffer[snprintf(buffer, 40, "%u-%u-%u", entry->source, entry->number, i)] =
        ':';
    return (struct slice){ buffer, recipe->item };
}

struct source
source_of(struct rig *rig, uint32_t id)
{
    return (struct source){ .rig = rig, .id = id };
}

void
source_fini(struct source *source)
{
    stage_fini(&source->stage);
    mem_free(source->entries);
}

uint64_t
append(struct source *source)
{
    struct entry entry = { 0, source->id, source->next };
    struct recipe recipe = recipe_of(entry.source, entry.number);
    struct slice argv[3] = { slice_lit("BF.ADD"),
                             slice_lit("key"),
                             { NULL, recipe.item } };
    char buffer[20064];

    if (source->next == source->max) {
        source->max = source->max * 2 + 64;
        source->entries = mem_try_realloc(
            source->entries, source->max * sizeof(*source->entries));
        assert_non_null(source->entries);
    }
    assert_true(stage_open(&source->stage,
                           recipe.effects * stage_effect_bytes(argv, 3)));
    for (unsigned i = 0; i < recipe.effects; i++) {
        argv[2] = item_of(&recipe, &entry, i, buffer);
        stage_add(&source->stage, db_of(&recipe, i), argv, 3);
    }
    entry.position = journal_append(source->rig->journal,
                                    stage_close(&source->stage, recipe.txn));
    source->entries[source->next++] = entry;
    return entry.position;
}

uint64_t
append_and_kick(struct source *source)
{
    uint64_t position = append(source);

    journal_kick(source->rig->journal);
    return position;
}

uint64_t
append_released(struct source *source)
{
    uint64_t position = append_and_kick(source);

    until(released(source->rig) >= position);
    return position;
}

uint64_t
append_stuck(struct source *source, enum disk_call call)
{
    uint64_t position;

    disk_hold(call, true);
    position = append_and_kick(source);
    until(disk_is_inside(call));
    return position;
}

void
append_failed(struct source *source)
{
    disk_fail(DISK_WRITE, 1, false);
    (void)append_and_kick(source);
    until(status_of(source->rig).suspect);
}

atomic_bool enough;

void *
append_until_enough(void *arg)
{
    struct source *source = arg;

    while (!enough) {
        uint64_t position = append_and_kick(source);

        if (mix(source->next) % 4 == 0) {
            until(released(source->rig) >= position || enough);
        }
    }
    metric_thread_exit();
    return NULL;
}

/* ---- what is in the files ------------------------------------------------ */

/* Reads "*<n> $<len> ..." of up to 3 words. */
static size_t
read_command(const char **at, const char *end, struct slice argv[3])
{
    char *next;
    size_t argc;

    assert_true(*at < end && **at == '*');
    argc = strtoul(*at + 1, &next, 10);
    assert_in_range(argc, 1, 3);
    for (size_t i = 0; i < argc; i++) {
        assert_memory_equal("\r\n$", next, 3);
        argv[i].len = strtoul(next + 3, &next, 10);
        argv[i].data = next + 2;
        next += 2 + argv[i].len;
        assert_true(next < end);
    }
    assert_memory_equal("\r\n", next, 2);
    *at = next + 2;
    return argc;
}

static int
compare_entries(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;

    return x->position < y->position ? -1 : x->position > y->position;
}

struct expected
expect(const struct source *sources, size_t count, uint64_t from)
{
    struct expected expected = { NULL, 0, 0 };
    size_t all = 0;

    for (size_t i = 0; i < count; i++) {
        all += sources[i].next;
    }
    expected.entries = mem_alloc(all * sizeof(*expected.entries));
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < sources[i].next; j++) {
            if (sources[i].entries[j].position > from) {
                expected.entries[expected.count++] = sources[i].entries[j];
            }
        }
    }
    qsort(expected.entries, expected.count, sizeof(*expected.entries),
          compare_entries);
    return expected;
}

/* One piece, at its place: its effects, each in its database, and a
 * transaction in one. */
static void
check_piece(const struct entry *entry, const char **at, const char *end,
            uint32_t *db)
{
    struct recipe recipe = recipe_of(entry->source, entry->number);
    bool wrapped = recipe.txn && recipe.effects > 1;
    unsigned done = 0;
    unsigned frames = 0; /* of MULTI and EXEC */
    char buffer[20064];

    while (done < recipe.effects || (wrapped && frames < 2)) {
        struct slice argv[3];
        size_t argc = read_command(at, end, argv);

        if (slice_is_word(argv[0], "select")) {
            *db = (uint32_t)strtoul(argv[1].data, NULL, 10);
        } else if (slice_is_word(argv[0], "multi")) {
            assert_true(wrapped && frames++ == 0 && done == 0);
        } else if (slice_is_word(argv[0], "exec")) {
            assert_true(frames++ == 1 && done == recipe.effects);
        } else {
            struct slice item = item_of(&recipe, entry, done, buffer);

            assert_int_equal(3, argc);
            assert_int_equal(wrapped, frames);
            assert_int_equal(item.len, argv[2].len);
            assert_memory_equal(item.data, argv[2].data, item.len);
            assert_int_equal(db_of(&recipe, done), *db);
            done++;
        }
    }
}

uint64_t
check_groups(struct expected *expected, struct slice data, uint64_t offset,
             uint64_t key, uint64_t position, uint64_t *sequence)
{
    struct group group;
    enum group_status status;

    while ((status = group_read(data, key, offset, &group)) == GROUP_OK) {
        const char *at = group.commands.data;
        const char *end = at + group.commands.len;
        uint32_t db = UINT32_MAX;

        assert_int_equal(offset, group.begin);
        assert_int_equal(*sequence + 1, group.seal.sequence);
        assert_true(group.seal.durable_sequence < group.seal.sequence);
        assert_memory_equal("*2\r\n$6\r\nSELECT\r\n", at, 16);
        while (at < end) {
            struct entry *entry = &expected->entries[expected->next++];

            assert_true(expected->next <= expected->count);
            check_piece(entry, &at, end, &db);
            assert_int_equal(position + (uint64_t)(at - data.data) - offset,
                             entry->position);
        }
        ++*sequence;
        position += group.end - offset;
        offset = group.end;
    }
    assert_int_equal(GROUP_END, status);
    return position;
}

void
check_files(const struct source *sources, size_t count, uint64_t from,
            uint64_t sequence)
{
    struct expected expected = expect(sources, count, from);
    uint64_t position = from;

    for (size_t i = 0; i < disk.count; i++) {
        struct disk_file *file = &disk.files[i];
        uint64_t size = size_of(file->fd);
        struct slice data;
        char *bytes;

        if (file->begin < from ||
            (size == GROUP_FIRST_LINE_BYTES && file->begin != position)) {
            continue;
        }
        assert_false(file->suspect);
        assert_int_equal(position, file->begin);
        bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, file->fd, 0);
        assert_true(bytes != MAP_FAILED);
        data = (struct slice){ bytes, size };
        position = check_groups(&expected, data, GROUP_FIRST_LINE_BYTES,
                                file->key, position, &sequence);
        (void)munmap(bytes, size);
    }
    assert_int_equal(expected.count, expected.next);
    mem_free(expected.entries);
}

/* ---- the end of a test --------------------------------------------------- */

void
finish(struct source *source)
{
    struct rig *rig = source->rig;

    source_fini(source);
    (void)disk_heal();
    rig_free(rig);
}

void
finish_checked(struct source *source, uint64_t from, uint64_t sequence)
{
    check_files(source, 1, from, sequence);
    finish(source);
}

void
finish_with_base(struct source *source, uint64_t position, uint64_t sequence,
                 uint64_t last)
{
    base_done(source->rig, position, sequence);
    until(released(source->rig) >= last);
    finish_checked(source, position, sequence);
}
