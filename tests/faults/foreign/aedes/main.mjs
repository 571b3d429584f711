// A broker of Aedes on a port of this machine; its sessions end with it.
import { createServer } from 'node:net'
import { Aedes } from 'aedes'

const broker = await Aedes.createBroker({ queueLimit: 100000 })
createServer(broker.handle).listen(Number(process.argv[2]), '127.0.0.1')
