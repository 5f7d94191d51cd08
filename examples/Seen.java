// SPDX-License-Identifier: BSD-3-Clause
//
// Asks a filter which items are new: java Seen PORT. It needs jedis.

import redis.clients.jedis.RedisClient;
import redis.clients.jedis.exceptions.JedisDataException;

final class Seen {
    public static void main(String[] words) {
        RedisClient client = RedisClient.create("127.0.0.1", Integer.parseInt(words[0]));
        try {
            client.bfReserve("seen", 0.001, 1000000);
        } catch (JedisDataException error) {
            if (!error.getMessage().contains("exists")) {
                throw error;
            }
        }

        client.bfMAdd("seen", "alice", "bob");
        System.out.println(client.bfMExists("seen", "alice", "carol"));
        System.out.println("new: " + client.sendCommand(
            () -> "BF.COUNTNEW".getBytes(), "seen", "bob", "carol"));
        client.close();
    }
}
