package main

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/eclipse/paho.golang/paho"
)

const method = "SCRAM-SHA-256"

// The client's part of SCRAM-SHA-256, for one login.
type scram struct {
	password string
	bare     string
}

func newScram(name, password string) *scram {
	return &scram{password, fmt.Sprintf("n=%s,r=%s", name, rand.Text())}
}

func (scram *scram) begin(connect *paho.Connect, _ *url.URL) (*paho.Connect, error) {
	if connect.Properties == nil {
		connect.Properties = &paho.ConnectProperties{}
	}
	connect.Properties.AuthMethod = method
	connect.Properties.AuthData = []byte("n,," + scram.bare)
	return connect, nil
}

func mac(key []byte, text string) []byte {
	made := hmac.New(sha256.New, key)
	made.Write([]byte(text))
	return made.Sum(nil)
}

// Authenticate answers the server's message by the proof.
func (scram *scram) Authenticate(packet *paho.Auth) *paho.Auth {
	asked := string(packet.Properties.AuthData)
	fields := map[string]string{}
	for _, part := range strings.Split(asked, ",") {
		name, value, _ := strings.Cut(part, "=")
		fields[name] = value
	}
	salt, _ := base64.StdEncoding.DecodeString(fields["s"])
	iterations, _ := strconv.Atoi(fields["i"])
	key, err := pbkdf2.Key(sha256.New, scram.password, salt, iterations, sha256.Size)
	if err != nil {
		panic(err)
	}
	client := mac(key, "Client Key")
	stored := sha256.Sum256(client)
	without := "c=biws,r=" + fields["r"]
	signature := mac(stored[:], fmt.Sprintf("%s,%s,%s", scram.bare, asked, without))
	for at := range client {
		client[at] ^= signature[at]
	}
	proof := base64.StdEncoding.EncodeToString(client)
	return &paho.Auth{
		ReasonCode: 0x18,
		Properties: &paho.AuthProperties{
			AuthMethod: method,
			AuthData:   fmt.Appendf(nil, "%s,p=%s", without, proof),
		},
	}
}

// Authenticated is called at the end. The client does not show what CONNACK has.
func (scram *scram) Authenticated() {}
