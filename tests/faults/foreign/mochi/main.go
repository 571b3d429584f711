// A broker of mochi-mqtt on a port of this machine; its sessions end with it.
package main

import (
	"log"
	"os"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
)

func main() {
	server := mqtt.New(nil)
	check(server.AddHook(new(auth.AllowHook), nil))
	check(server.AddListener(listeners.NewTCP(listeners.Config{ID: "tcp", Address: "127.0.0.1:" + os.Args[1]})))
	check(server.Serve())
	select {}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
