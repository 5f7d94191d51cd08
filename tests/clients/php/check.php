<?php
// SPDX-License-Identifier: BSD-3-Clause
//
// What the PHP programs share: the words on the command line, and the lines
// that the driver reads (README.md).

declare(strict_types=1);

define('PORT', (int)$argv[1]);
// The file of the authority that signed the server's certificate; plain TCP without.
define('CA', getenv('BLOOMERY_CA'));
define('DIALECT', $argv[2]);
define('BLOOM', DIALECT !== 'redis-server');
// Where redis-server stands in for the server, a set stands in for a filter:
// SADD, SISMEMBER and SCARD answer as BF.ADD, BF.EXISTS and BF.CARD do.
define('ADD', BLOOM ? 'BF.ADD' : 'SADD');
define('EXISTS', BLOOM ? 'BF.EXISTS' : 'SISMEMBER');
define('CARD', BLOOM ? 'BF.CARD' : 'SCARD');
define('TYPE', ['valkey' => 'bloomfltr', 'redis' => 'MBbloom--'][DIALECT] ?? 'set');

$failed = false;

function check(string $area, string $what, callable $body): void
{
    global $failed;
    try {
        $body();
        echo "ok $area RESP2 $what\n";
    } catch (Throwable $problem) {
        $failed = true;
        $text = str_replace("\n", ' ', $problem->getMessage());
        $where = $problem->getTrace()[0]['line'] ?? $problem->getLine();
        echo "not ok $area RESP2 $what: $text (line $where)\n";
    }
}

function same($got, $want): void
{
    if ($got !== $want) {
        throw new Exception('got ' . json_encode($got) . ', want ' . json_encode($want));
    }
}

function fails(string $text, callable $body): void
{
    try {
        $got = $body();
    } catch (Exception $problem) {
        same(str_contains($problem->getMessage(), $text), true);
        return;
    }
    throw new Exception('no error but ' . json_encode($got));
}

function finish(): void
{
    global $failed;
    echo "lacks RESP3 it speaks RESP2 only\n";
    echo BLOOM ? '' : "lacks bloom redis-server stands in\n";
    echo "end\n";
    exit($failed ? 1 : 0);
}
