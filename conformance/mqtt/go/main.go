// Command client has one of Eclipse Paho's clients for Go do what each line of standard input says,
// and answers each by a line. conformance/mqtt/clients/puppets.py asks it.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Far beyond what anything takes on a loaded machine.
const patience = 90 * time.Second

// Seconds that a session of MQTT 5 stays.
const kept = 3600

type message struct {
	Topic      string     `json:"topic"`
	Payload    string     `json:"payload"`
	QoS        byte       `json:"qos"`
	Retain     bool       `json:"retain"`
	Properties properties `json:"properties"`
}

type properties struct {
	User        [][2]string `json:"user,omitempty"`
	Response    string      `json:"response,omitempty"`
	Correlation string      `json:"correlation,omitempty"`
}

type request struct {
	Do       string
	Host     string
	Port     int
	ClientID string `json:"client_id"`
	Version  uint
	Clean    bool
	Will     *message
	Handler  string
	Scram    []string
	Filter   string
	QoS      byte
	Message  message
	Count    int
}

// A client; what comes to it goes to the inbox.
type client interface {
	connect(login request, inbox *inbox) error
	subscribe(filter string, qos byte) error
	publish(message message) error
	leave() error
}

// Messages that were not asked for yet, and the number of connections.
type inbox struct {
	messages    chan message
	mutex       sync.Mutex
	changed     *sync.Cond
	connections int
}

func (inbox *inbox) connected() {
	inbox.mutex.Lock()
	defer inbox.mutex.Unlock()
	inbox.connections++
	inbox.changed.Broadcast()
}

func (inbox *inbox) await(count int) {
	inbox.mutex.Lock()
	defer inbox.mutex.Unlock()
	for inbox.connections < count {
		inbox.changed.Wait()
	}
}

func main() {
	var does client
	switch os.Args[1] {
	case "paho":
		does = &pahoClient{}
	case "autopaho":
		does = &autopahoClient{}
	}
	inbox := &inbox{messages: make(chan message, 1000)}
	inbox.changed = sync.NewCond(&inbox.mutex)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		answer, err := answerTo(does, inbox, lines.Bytes())
		if err != nil {
			answer = map[string]string{"error": err.Error()}
		}
		line, err := json.Marshal(answer)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(line))
	}
}

func answerTo(does client, inbox *inbox, line []byte) (any, error) {
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	done := map[string]string{}
	switch asked.Do {
	case "connect":
		return done, does.connect(asked, inbox)
	case "subscribe":
		return done, does.subscribe(asked.Filter, asked.QoS)
	case "publish":
		return done, does.publish(asked.Message)
	case "await":
		inbox.await(asked.Count)
		return done, nil
	case "leave":
		return done, does.leave()
	case "message":
		select {
		case found := <-inbox.messages:
			return found, nil
		case <-time.After(patience):
			return nil, errors.New("no message has come")
		}
	}
	return nil, fmt.Errorf("%s is nothing that it does", asked.Do)
}
