# SPDX-License-Identifier: BSD-3-Clause
#
# One side of a comparison in Ruby: adds items to a filter and asks for them, through
# Debian's ruby-redis. `hand` keeps the filter in a bitmap, as programs in Ruby do:
# CRC-32 with seven seeds, and all SETBIT or GETBIT of a batch in one pipeline. `bf`
# sends the BF.* commands. Prints `ready`, waits for a line, and prints one line of
# key=value.
#
#   by_hand.rb PORT hand|bf add|check BATCH ITEMS
require 'redis'
require 'zlib'

CAPACITY = 100_000
RATE = 0.01
BITS = 958_506
HASHES = 7

# The filter in a bitmap.
class ByHand
  def initialize(redis, name)
    @redis = redis
    @name = name
  end

  def offsets(item)
    Array.new(HASHES) { |seed| Zlib.crc32("#{item}:#{seed}") % BITS }
  end

  def add(items)
    @redis.pipelined do |pipe|
      items.each { |item| offsets(item).each { |at| pipe.setbit(@name, at, 1) } }
    end
  end

  def check(items)
    bits = @redis.pipelined do |pipe|
      items.each { |item| offsets(item).each { |at| pipe.getbit(@name, at) } }
    end
    bits.each_slice(HASHES).map { |its| !its.include?(0) }
  end
end

# The filter of the server.
class Commands
  def initialize(redis, name)
    @redis = redis
    @name = name
    @redis.call('BF.RESERVE', name, RATE, CAPACITY) unless redis.exists?(name)
  end

  def add(items)
    @redis.call(items.size == 1 ? 'BF.ADD' : 'BF.MADD', @name, *items)
  end

  def check(items)
    @redis.call(items.size == 1 ? 'BF.EXISTS' : 'BF.MEXISTS', @name, *items)
  end
end

def cpu
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

port, how, request, batch, count = ARGV
redis = Redis.new(port: Integer(port))
filter = (how == 'bf' ? Commands : ByHand).new(redis, "ruby-#{how}")
items = Array.new(Integer(count)) { |number| format('item%08x', number) }
items.each_slice(1000) { |some| filter.add(some) } if request == 'check'
filter.public_send(request, items.first(1)) # connects
puts 'ready'
$stdout.flush
$stdin.gets
used = cpu
began = now
items.each_slice(Integer(batch)) { |some| filter.public_send(request, some) }
puts format('seconds=%<seconds>.6f cpu=%<cpu>.6f', seconds: now - began, cpu: cpu - used)
