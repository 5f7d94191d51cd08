<?php
// SPDX-License-Identifier: BSD-3-Clause
//
// predis 1 of Debian 12: executeRaw() for BF, RESP2. Predis 3, which has typed
// helpers, is in no registry that is reached here.

declare(strict_types=1);

error_reporting(E_ALL & ~E_DEPRECATED); // It is older than this PHP.
require 'Predis/autoload.php';
require __DIR__ . '/check.php';

function open(array $more = []): Predis\Client
{
    $tls = CA ? ['scheme' => 'tls', 'ssl' => ['cafile' => CA]] : [];
    return new Predis\Client(['host' => '127.0.0.1', 'port' => PORT] + $tls + $more);
}

function raw(Predis\Client $client, string ...$words)
{
    return $client->executeRaw($words);
}

function refused(Predis\Client $client, string $text, string ...$words): void
{
    $got = $client->executeRaw($words, $error);
    same([$error, str_contains((string)$got, $text)], [true, true]);
}

$client = open();
$other = open();
echo 'note predis ' . Predis\Client::VERSION . "\n";

check('connect', 'ping', function () use ($client) {
    same([(string)$client->ping(), $client->echo('x')], ['PONG', 'x']);
    same((string)$client->flushall(), 'OK');
    same($client->info()['Server']['redis_mode'], 'standalone');
});
check('pool', 'persistent connections', function () use ($client) {
    $sum = 0;
    for ($i = 0; $i < 200; $i++) {
        $one = open(['persistent' => 'pool' . $i % 4]);
        $sum += raw($one, ADD, 'pool', (string)($i % 50));
    }
    same($sum, raw($client, CARD, 'pool'));
});
check('pipeline', 'thousand', function () use ($client) {
    $got = $client->pipeline(function ($pipe) {
        for ($i = 0; $i < 1000; $i++) {
            $command = new Predis\Command\RawCommand([ADD, 'pipe', (string)($i % 500)]);
            $pipe->executeCommand($command);
        }
    });
    same([count($got), array_sum(array_slice($got, 500))], [1000, 0]);
    same(array_sum($got), raw($client, CARD, 'pipe'));
});
check('transaction', 'exec', function () use ($client) {
    $got = $client->transaction(function ($tx) {
        $command = new Predis\Command\RawCommand([ADD, 'txn', 'a']);
        $tx->executeCommand($command);
        $tx->executeCommand($command);
        $tx->exists('txn');
    });
    same($got, [1, 0, 1]);
});
check('watch', 'changed unchanged', function () use ($client, $other) {
    $run = fn (string $changed) => $client->transaction(['watch' => 'txn', 'cas' => true],
        function ($tx) use ($other, $changed) {
            $tx->exists('txn'); // The first command sends WATCH.
            raw($other, ADD, $changed, 'b');
            $tx->multi();
            $tx->ping();
        });
    fails('aborted', fn () => $run('txn'));
    same((string)$run('another')[0], 'PONG');
});
check('pubsub', 'subscribe', function () use ($other) {
    $loop = open(['read_write_timeout' => 5])->pubSubLoop();
    $heard = [];
    $loop->subscribe('news');
    foreach ($loop as $message) {
        $heard[] = $message->kind . ' ' . $message->channel . ' ' . $message->payload;
        if ($message->kind === 'subscribe') {
            same($other->publish('news', 'hello'), 1);
        } else {
            $loop->unsubscribe();
        }
    }
    same($heard, ['subscribe news 1', 'message news hello', 'unsubscribe news 0']);
    same($other->publish('news', 'nobody'), 0);
});
check('pattern', 'psubscribe', function () use ($other) {
    $loop = open(['read_write_timeout' => 5])->pubSubLoop();
    $loop->psubscribe('news.*');
    $heard = null;
    foreach ($loop as $message) {
        if ($message->kind === 'psubscribe') {
            same($other->publish('news.today', 'hello'), 1);
        } elseif ($message->kind === 'pmessage') {
            $heard = [$message->pattern, $message->channel, $message->payload];
            $loop->punsubscribe();
        }
    }
    same($heard, ['news.*', 'news.today', 'hello']);
});
check('keys', 'commands', function () use ($client) {
    raw($client, ADD, 'key', 'a');
    same((string)$client->type('key'), TYPE);
    same([$client->expire('key', 100), $client->persist('key')], [1, 1]);
    same((string)$client->rename('key', 'renamed'), 'OK');
    same($client->del(['renamed', 'gone']), 1);
    $seen = array_unique(iterator_to_array(
        new Predis\Collection\Iterator\Keyspace($client), false));
    sort($seen);
    same($seen, ['another', 'pipe', 'pool', 'txn']);
});
if (BLOOM) {
    check('bloom', 'calls', function () use ($client) {
        same((string)raw($client, 'BF.RESERVE', 'b', '0.01', '1000'), 'OK');
        refused($client, 'item exists', 'BF.RESERVE', 'b', '0.01', '1000');
        same(raw($client, 'BF.MADD', 'b', 'foo', 'bar', 'foo'), [1, 1, 0]);
        same(raw($client, 'BF.MEXISTS', 'b', 'foo', 'no'), [1, 0]);
        same(raw($client, 'BF.CARD', 'b'), 2);
        same(count(raw($client, 'BF.INFO', 'b')), DIALECT === 'valkey' ? 16 : 10);
        same(raw($client, 'BF.INFO', 'b', 'ITEMS'), DIALECT === 'valkey' ? 2 : [2]);
        refused($client, 'not found', 'BF.INFO', 'missing');
    });
}
echo "lacks cache it has none\n";
finish();
