"""Uses redis-py as programs do, in both protocols. Started by main.rs with the server's Unix socket."""

import sys

import redis

for protocol in (2, 3):
    client = redis.Redis(unix_socket_path=sys.argv[1], protocol=protocol, decode_responses=True)
    assert client.ping()
    assert client.flushall()

    assert client.set("text", "value", ex=100)
    assert client.get("text") == "value"
    assert 0 < client.ttl("text") <= 100
    assert client.persist("text") and client.ttl("text") == -1
    assert client.set("text", "other", nx=True) is None
    assert client.getset("text", "next") == "value"
    assert client.incr("count") == 1 and client.incrbyfloat("number", 1.5) == 1.5
    assert client.mset({"a": "1", "b": "2"}) and client.mget("a", "b", "c") == ["1", "2", None]
    assert client.append("a", "23") == 3 and client.getrange("a", 1, 2) == "23"
    assert client.copy("a", "a2") and client.rename("a2", "a3") and client.exists("a2", "a3") == 1

    assert client.rpush("list", *range(10)) == 10
    assert client.lrange("list", 0, 2) == ["0", "1", "2"]
    assert client.lpop("list", 2) == ["0", "1"] and client.rpop("list") == "9"
    assert client.lmove("list", "other", "LEFT", "RIGHT") == "2"
    assert client.lpos("list", "5") == 2
    assert client.lmpop(2, "nothing", "list", direction="LEFT", count=2) == ["list", ["3", "4"]]

    with client.pipeline(transaction=False) as pipeline:
        for number in range(1000):
            pipeline.set(f"key:{number}", number)
        assert all(pipeline.execute())
    assert len(set(client.scan_iter(match="key:*", count=100))) == 1000
    assert client.unlink("text", "list") == 2 and client.type("other") == "list"
    assert client.object("encoding", "count") == "int"
    assert client.info("server")["redis_mode"] == "standalone"
    assert client.config_get("maxclients")["maxclients"] and client.client_setname("name") and client.client_getname() == "name"
    assert any(one["name"] == "name" for one in client.client_list())
    try:
        client.lpush("count", "x")
        raise AssertionError("a list command on a number")
    except redis.ResponseError as error:
        assert "WRONGTYPE" in str(error) or "wrong kind of value" in str(error), error
    client.close()
print("ok")
