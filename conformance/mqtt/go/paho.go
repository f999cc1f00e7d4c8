package main

import (
	"errors"
	"fmt"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

type pahoClient struct {
	client mqtt.Client
}

func finished(token mqtt.Token) error {
	if !token.WaitTimeout(patience) {
		return errors.New("it never ended")
	}
	return token.Error()
}

func (paho *pahoClient) connect(login request, inbox *inbox) error {
	options := mqtt.NewClientOptions().
		AddBroker(fmt.Sprintf("tcp://%s:%d", login.Host, login.Port)).
		SetClientID(login.ClientID).
		SetCleanSession(login.Clean).
		SetProtocolVersion(login.Version).
		SetMaxReconnectInterval(time.Second)
	if login.Will != nil {
		options.SetWill(login.Will.Topic, login.Will.Payload, login.Will.QoS, login.Will.Retain)
	}
	options.SetDefaultPublishHandler(func(_ mqtt.Client, each mqtt.Message) {
		inbox.messages <- message{
			each.Topic(), string(each.Payload()), each.Qos(), each.Retained(), properties{},
		}
	})
	options.SetOnConnectHandler(func(client mqtt.Client) {
		if login.Handler != "" {
			client.Subscribe(login.Handler, 1, nil)
		}
		inbox.connected()
	})
	paho.client = mqtt.NewClient(options)
	return finished(paho.client.Connect())
}

func (paho *pahoClient) subscribe(filter string, qos byte) error {
	return finished(paho.client.Subscribe(filter, qos, nil))
}

func (paho *pahoClient) publish(message message) error {
	return finished(paho.client.Publish(message.Topic, message.QoS, message.Retain, message.Payload))
}

func (paho *pahoClient) leave() error {
	paho.client.Disconnect(100)
	return nil
}
