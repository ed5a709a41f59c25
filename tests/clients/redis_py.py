"""Uses redis-py as programs do, in both protocols. Started by main.rs with the server's Unix socket."""

import sys

import redis


def next_message(subscriber):
    """The next message that is no confirmation."""
    while True:
        message = subscriber.get_message(timeout=20)
        assert message is not None, "no message came"
        if not message["type"].endswith("subscribe"):
            return message


def publish_and_subscribe(client):
    subscriber = client.pubsub()
    subscriber.subscribe("news", "other")
    subscriber.psubscribe("n?ws")
    subscriber.ssubscribe("shard")
    while client.pubsub_numpat() != 1 or client.pubsub_shardnumsub("shard") not in ([("shard", 1)], [["shard", 1]]):
        pass
    assert client.publish("news", "hello") == 2 and client.spublish("shard", "small") == 1
    told = [next_message(subscriber) for _ in range(2)]
    assert [(one["type"], one["pattern"], one["channel"], one["data"]) for one in told] == [
        ("message", None, "news", "hello"),
        ("pmessage", "n?ws", "news", "hello"),
    ], told
    told = subscriber.get_sharded_message(timeout=20) if hasattr(subscriber, "get_sharded_message") else next_message(subscriber)
    assert (told["type"], told["channel"], told["data"]) == ("smessage", "shard", "small"), told
    assert sorted(client.pubsub_channels()) == ["news", "other"]
    subscriber.ping()
    assert next_message(subscriber) is not None

    subscriber.close()

    heard = []
    subscriber = client.pubsub()
    subscriber.subscribe(events=lambda message: heard.append(message["data"]))
    thread = subscriber.run_in_thread(sleep_time=0.01)
    while client.publish("events", "first") == 0:
        pass
    while not heard:
        pass
    thread.stop()
    thread.join()
    assert heard[0] == "first"
    subscriber.close()

    assert client.config_set("notify-keyspace-events", "KEA")
    subscriber = client.pubsub()
    subscriber.psubscribe("__keyspace@0__:watched")
    while client.pubsub_numpat() != 1:
        pass
    client.set("watched", "1", ex=100)
    client.delete("watched")
    assert [next_message(subscriber)["data"] for _ in range(3)] == ["set", "expire", "del"]
    assert client.config_set("notify-keyspace-events", "")
    subscriber.close()

    with client.monitor() as monitor:
        client.echo("watched")
        assert any(one["command"] == "ECHO watched" for one in (monitor.next_command() for _ in range(20)))


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
    publish_and_subscribe(client)
    client.close()
print("ok")
