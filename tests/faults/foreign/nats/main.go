// A NATS server with its MQTT gateway on a port of this machine; its sessions end with it.
package main

import (
	"log"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	port, err := strconv.Atoi(os.Args[1])
	check(err)
	folder, err := os.MkdirTemp(".", "store-")
	check(err)
	options := &server.Options{
		ServerName: "campaign", Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: folder, NoSigs: true,
		// What was not acknowledged comes again after that time alone, not with the next connection; 30 s by default.
		MQTT: server.MQTTOpts{Host: "127.0.0.1", Port: port, AckWait: time.Second},
	}
	broker, err := server.NewServer(options)
	check(err)
	broker.Start()
	broker.WaitForShutdown()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
