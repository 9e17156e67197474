"""Flight messages made by hand, for what no client library would send."""

import json
import queue

import grpc
import pyarrow as pa

SERVICE = "/arrow.flight.protocol.FlightService/"


class RawClient:
    """gRPC calls whose messages are bytes."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(
            address, options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])

    def close(self):
        self.channel.close()

    def put(self, messages, timeout=30):
        """A DoPut of these messages: the raw results, or the grpc.RpcError it ends with."""
        return list(self.channel.stream_stream(SERVICE + "DoPut")(iter(messages), timeout=timeout))

    def get(self, ticket, timeout=30):
        return list(self.channel.unary_stream(SERVICE + "DoGet")(field(1, ticket), timeout=timeout))

    def handshake(self, payload, timeout=30):
        request = field(2, payload)
        return list(self.channel.stream_stream(SERVICE + "Handshake")(iter([request]), timeout=timeout))

    def info(self, descriptor, timeout=30):
        return self.channel.unary_unary(SERVICE + "GetFlightInfo")(descriptor, timeout=timeout)

    def act(self, kind, body, timeout=30):
        action = field(1, kind.encode()) + field(2, body)
        return list(self.channel.unary_stream(SERVICE + "DoAction")(action, timeout=timeout))


class BreakablePut:
    """A DoPut that can be broken off, which pyarrow's writer cannot."""

    def __init__(self, address, command_fields, schema):
        self.client = RawClient(address)
        self.schema = schema
        self.messages = queue.SimpleQueue()
        first, = messages_of(schema, [])
        self.messages.put(flight_data(*first, descriptor=command(**command_fields)))
        self.call = self.client.channel.stream_stream(SERVICE + "DoPut")(iter(self.messages.get, None))

    def write(self, batch):
        for message in messages_of(self.schema, [batch])[1:]:
            self.messages.put(flight_data(*message))

    def read_ack(self):
        """The counts of the next acknowledgement."""
        result = next(self.call)
        return json.loads(result[result.index(b"{"):])

    def read_acks_until(self, batches):
        while (ack := self.read_ack())["batches"] < batches:
            pass
        return ack

    def break_off(self):
        self.call.cancel()
        self.messages.put(None)
        self.client.close()


def varint(number):
    out = bytearray()
    while True:
        byte, number = number & 0x7F, number >> 7
        out.append(byte | (0x80 if number else 0))
        if not number:
            return bytes(out)


def field(number, data):
    """A protobuf field of bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def flight_data(header=b"", body=b"", descriptor=b"", metadata=b""):
    """A FlightData message; absent parts are left out."""
    return b"".join(field(number, data) for number, data in
                    ((1, descriptor), (2, header), (3, metadata), (1000, body)) if data)


def command(**fields):
    """A FlightDescriptor with a JSON command."""
    return varint(1 << 3) + varint(2) + field(2, json.dumps(fields).encode())


def messages_of(schema, batches):
    """(header, body) of each message of an IPC stream: the schema first."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    found = []
    for message in reader:
        body = message.body.to_pybytes() if message.body is not None else b""
        found.append((message.metadata.to_pybytes(), body))
    return found
