package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/gammazero/nexus/v3/client"
	"github.com/gammazero/nexus/v3/wamp"
)

// The time that an application waits before it dials again.
const pause = 100 * time.Millisecond

// returning hears events for ever: this client does not connect anew, so that the application does.
// It says what the client tells of each end.
func returning(r *run) {
	config := client.Config{
		Realm: "realm1", Serialization: r.serializer, ResponseTimeout: patience,
		Logger: log.New(io.Discard, "", 0),
	}
	heard := func(event *wamp.Event) { fmt.Println("got", event.Arguments[0]) }
	for {
		joined, err := client.ConnectNet(context.Background(), r.url, config)
		if err == nil {
			err = joined.Subscribe("com.returning", heard, nil)
		}
		if err != nil {
			time.Sleep(pause)
			continue
		}
		fmt.Println("there")
		<-joined.Done()
		goodbye := "no GOODBYE"
		if said := joined.RouterGoodbye(); said != nil {
			goodbye = fmt.Sprintf("GOODBYE `%s`", said.Reason)
		}
		fmt.Printf("ended: `Done()`, %s\n", goodbye)
	}
}
