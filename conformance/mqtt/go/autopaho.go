package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"
)

type autopahoClient struct {
	manager *autopaho.ConnectionManager
}

func deadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func received(packet *paho.Publish) message {
	found := message{
		packet.Topic, string(packet.Payload), packet.QoS, packet.Retain, properties{},
	}
	if packet.Properties == nil {
		return found
	}
	for _, pair := range packet.Properties.User {
		found.Properties.User = append(found.Properties.User, [2]string{pair.Key, pair.Value})
	}
	found.Properties.Response = packet.Properties.ResponseTopic
	found.Properties.Correlation = string(packet.Properties.CorrelationData)
	return found
}

func (auto *autopahoClient) connect(login request, inbox *inbox) error {
	address, err := url.Parse(fmt.Sprintf("mqtt://%s:%d", login.Host, login.Port))
	if err != nil {
		return err
	}
	config := autopaho.ClientConfig{
		ServerUrls:                    []*url.URL{address},
		KeepAlive:                     30,
		CleanStartOnInitialConnection: login.Clean,
		ReconnectBackoff:              func(int) time.Duration { return 200 * time.Millisecond },
		OnConnectionUp: func(manager *autopaho.ConnectionManager, _ *paho.Connack) {
			if login.Handler != "" {
				ctx, cancel := deadline()
				defer cancel()
				manager.Subscribe(ctx, &paho.Subscribe{
					Subscriptions: []paho.SubscribeOptions{{Topic: login.Handler, QoS: 1}},
				})
			}
			inbox.connected()
		},
		ClientConfig: paho.ClientConfig{
			ClientID: login.ClientID,
			OnPublishReceived: []func(paho.PublishReceived) (bool, error){
				func(each paho.PublishReceived) (bool, error) {
					inbox.messages <- received(each.Packet)
					return true, nil
				},
			},
		},
	}
	if !login.Clean {
		config.SessionExpiryInterval = kept
	}
	if login.Will != nil {
		config.WillMessage = &paho.WillMessage{
			Topic: login.Will.Topic, Payload: []byte(login.Will.Payload),
			QoS: login.Will.QoS, Retain: login.Will.Retain,
		}
	}
	refused := make(chan error, 1)
	if len(login.Scram) == 2 {
		proof := newScram(login.Scram[0], login.Scram[1])
		config.AuthHandler = proof
		config.ConnectPacketBuilder = proof.begin
		config.OnConnectError = func(err error) {
			select {
			case refused <- err:
			default:
			}
		}
	}
	ctx, cancel := deadline()
	defer cancel()
	auto.manager, err = autopaho.NewConnection(context.Background(), config)
	if err != nil {
		return err
	}
	connected := make(chan error, 1)
	go func() { connected <- auto.manager.AwaitConnection(ctx) }()
	select {
	case err := <-refused:
		return err
	case err := <-connected:
		return err
	}
}

func (auto *autopahoClient) subscribe(filter string, qos byte) error {
	ctx, cancel := deadline()
	defer cancel()
	_, err := auto.manager.Subscribe(ctx, &paho.Subscribe{
		Subscriptions: []paho.SubscribeOptions{{Topic: filter, QoS: qos}},
	})
	return err
}

func (auto *autopahoClient) publish(message message) error {
	ctx, cancel := deadline()
	defer cancel()
	packet := &paho.Publish{
		Topic: message.Topic, Payload: []byte(message.Payload),
		QoS: message.QoS, Retain: message.Retain,
		Properties: &paho.PublishProperties{ResponseTopic: message.Properties.Response},
	}
	for _, pair := range message.Properties.User {
		packet.Properties.User.Add(pair[0], pair[1])
	}
	if message.Properties.Correlation != "" {
		packet.Properties.CorrelationData = []byte(message.Properties.Correlation)
	}
	_, err := auto.manager.Publish(ctx, packet)
	return err
}

func (auto *autopahoClient) leave() error {
	ctx, cancel := deadline()
	defer cancel()
	return auto.manager.Disconnect(ctx)
}
