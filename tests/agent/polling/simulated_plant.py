"""A plant by other people's servers, run as a program: pymodbus with registers, asyncua with nodes; `main` says which.

Arguments: the ports of both. Holding registers 100 … 101 are the float 21.5, 102 is −7, 103 … 106 the double 1e100,
coil 3 is set, 500 and above are no registers. Nodes in namespace 2: `Heat` 180.25, `Door` true, `Label` a text,
`Broken` with a bad status.
"""

from __future__ import annotations

import asyncio
import struct
import sys

from asyncua import Server, ua
from pymodbus.datastore import ModbusDeviceContext, ModbusSequentialDataBlock, ModbusServerContext
from pymodbus.server import ModbusTcpServer


def registers() -> ModbusServerContext:
    """What the Modbus device holds. The library's blocks begin at 1 for the protocol's 0."""
    words = [0] * 500
    words[100:102] = struct.unpack(">2H", struct.pack(">f", 21.5))
    words[102] = -7 & 0xFFFF
    words[103:107] = struct.unpack(">4H", struct.pack(">d", 1e100))
    bits = [False] * 16
    bits[3] = True
    device = ModbusDeviceContext(hr=ModbusSequentialDataBlock(1, words), co=ModbusSequentialDataBlock(1, bits))
    return ModbusServerContext(devices=device, single=True)


async def nodes(port: int) -> Server:
    """A started server."""
    server = Server()
    await server.init()
    server.set_endpoint(f"opc.tcp://127.0.0.1:{port}/")
    space = await server.register_namespace("urn:plant")
    oven = await server.nodes.objects.add_object(space, "Oven")
    for name, value in (("Heat", 180.25), ("Door", True), ("Label", "north")):
        await oven.add_variable(ua.NodeId(name, space), name, value)
    broken = await oven.add_variable(ua.NodeId("Broken", space), "Broken", 1.0)
    bad = ua.DataValue(
        ua.Variant(1.0, ua.VariantType.Double), StatusCode=ua.StatusCode(ua.StatusCodes.BadSensorFailure)
    )
    await broken.write_value(bad)
    await server.start()
    return server


async def main(modbus: int, opcua: int) -> None:
    """Until it is killed."""
    await nodes(opcua)
    plant = ModbusTcpServer(registers(), address=("127.0.0.1", modbus))
    print("ready", flush=True)
    await plant.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
