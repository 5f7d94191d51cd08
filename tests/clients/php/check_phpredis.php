<?php
// SPDX-License-Identifier: BSD-3-Clause
//
// phpredis of Debian 12: rawCommand() for BF, RESP2, errors in getLastError().
// Its pool are persistent connections.

declare(strict_types=1);

require __DIR__ . '/check.php';

// The arguments of connect(). PHP checks the server by default.
const SERVER = CA ? ['tls://127.0.0.1', PORT, 5, null, 0, 0, ['stream' => ['cafile' => CA]]]
    : ['127.0.0.1', PORT, 5];

function open(): Redis
{
    $redis = new Redis();
    $redis->connect(...SERVER);
    return $redis;
}

/** An error reply makes rawCommand() return false and keep its text. */
function refused(Redis $redis, string $text, string ...$words): void
{
    $redis->clearLastError();
    same($redis->rawCommand(...$words), false);
    same(str_contains((string)$redis->getLastError(), $text), true);
}

$redis = open();
$other = open();
echo 'note phpredis ' . phpversion('redis') . "\n";

check('connect', 'ping', function () use ($redis) {
    same([$redis->ping(), $redis->echo('x'), $redis->flushAll()], [true, 'x', true]);
    same($redis->info()['redis_mode'], 'standalone');
});
check('pool', 'persistent connections', function () use ($redis) {
    $sum = 0;
    for ($i = 0; $i < 200; $i++) {
        $one = new Redis();
        $one->pconnect(...array_replace(SERVER, [3 => 'pool' . $i % 4]));
        $sum += $one->rawCommand(ADD, 'pool', (string)($i % 50));
    }
    same($sum, $redis->rawCommand(CARD, 'pool'));
});
check('pipeline', 'thousand', function () use ($redis) {
    $pipe = $redis->pipeline();
    for ($i = 0; $i < 1000; $i++) {
        $pipe->rawCommand(ADD, 'pipe', (string)($i % 500));
    }
    $got = $pipe->exec();
    same([count($got), array_sum(array_slice($got, 500))], [1000, 0]);
    same(array_sum($got), $redis->rawCommand(CARD, 'pipe'));
});
check('transaction', 'exec', function () use ($redis) {
    $got = $redis->multi()->rawCommand(ADD, 'txn', 'a')
        ->rawCommand(ADD, 'txn', 'a')->exists('txn')->exec();
    same($got, [1, 0, 1]);
});
check('watch', 'changed unchanged', function () use ($redis, $other) {
    $redis->watch('txn');
    $other->rawCommand(ADD, 'txn', 'b');
    same($redis->multi()->ping()->exec(), false);
    $redis->watch('txn');
    $other->rawCommand(ADD, 'another', 'b');
    same($redis->multi()->ping()->exec(), [true]);
});
check('pubsub', 'subscribe', function () use ($other) {
    $listening = open();
    $heard = [];
    // The message is on its way before it is listened to, in a second process.
    $child = publish('news', 'hello');
    closed($listening, 'subscribe', 'news', function ($one, ...$words) use (&$heard) {
        $heard = $words;
        $one->unsubscribe(['news']);
        $one->close();
    });
    proc_close($child);
    same($heard, ['news', 'hello']);
    same($other->publish('news', 'nobody'), 0);
});
check('pattern', 'psubscribe', function () use ($other) {
    $listening = open();
    $heard = [];
    $child = publish('news.today', 'hello');
    closed($listening, 'psubscribe', 'news.*', function ($one, ...$words) use (&$heard) {
        $heard = $words;
        $one->close();
    });
    proc_close($child);
    same($heard, ['news.*', 'news.today', 'hello']);
});
check('keys', 'commands', function () use ($redis) {
    $redis->rawCommand(ADD, 'key', 'a');
    // It gives numbers for the types it knows, and 0 for the others.
    same($redis->type('key'), BLOOM ? Redis::REDIS_NOT_FOUND : Redis::REDIS_SET);
    same([$redis->expire('key', 100), $redis->persist('key')], [true, true]);
    same([$redis->rename('key', 'renamed'), $redis->del('renamed', 'gone')], [true, 1]);
    $seen = [];
    $cursor = null;
    while (($part = $redis->scan($cursor)) !== false) {
        $seen = array_merge($seen, $part);
    }
    $seen = array_unique($seen);
    sort($seen);
    same($seen, ['another', 'pipe', 'pool', 'txn']);
});
if (BLOOM) {
    check('bloom', 'calls', function () use ($redis) {
        same($redis->rawCommand('BF.RESERVE', 'b', '0.01', '1000'), true);
        refused($redis, 'item exists', 'BF.RESERVE', 'b', '0.01', '1000');
        same($redis->rawCommand('BF.MADD', 'b', 'foo', 'bar', 'foo'), [1, 1, 0]);
        same($redis->rawCommand('BF.MEXISTS', 'b', 'foo', 'no'), [1, 0]);
        same($redis->rawCommand('BF.CARD', 'b'), 2);
        same(count($redis->rawCommand('BF.INFO', 'b')), DIALECT === 'valkey' ? 16 : 10);
        same($redis->rawCommand('BF.INFO', 'b', 'ITEMS'), DIALECT === 'valkey' ? 2 : [2]);
        refused($redis, 'not found', 'BF.INFO', 'missing');
        $redis->rawCommand('BF.RESERVE', 'f', '1e-9', '1', 'NONSCALING');
        same($redis->rawCommand('BF.MADD', 'f', 'a', 'b', 'c'), [1, false]);
    });
}
echo "lacks cache it has none\n";
finish();

/** Runs a subscription, which in this version ends with its connection only. */
function closed(Redis $redis, string $method, string $to, callable $heard): void
{
    try {
        $redis->$method([$to], $heard);
    } catch (RedisException $problem) {
        same($problem->getMessage(), 'Connection closed');
    }
}

/** A process that publishes as soon as somebody listens. */
function publish(string $channel, string $text)
{
    $code = '$r = new Redis(); $r->connect(...json_decode($argv[1], true));'
        . '$end = microtime(true) + 5;'
        . 'while (!$r->publish($argv[2], $argv[3]) && microtime(true) < $end) {'
        . 'usleep(2000); }';
    return proc_open(['php', '-r', $code, '--', json_encode(SERVER), $channel, $text], [], $pipes);
}
