// MQTT.js, which does what each line of standard input says, and answers each by a line.
'use strict'

const crypto = require('node:crypto')
const readline = require('node:readline')
const mqtt = require('mqtt')

const KEPT_S = 3600
let client = null
let connections = 0
const messages = []
const waiting = []

// Called at everything that a request may wait for.
function look () {
  for (let at = 0; at < waiting.length;) {
    if (waiting[at]()) waiting.splice(at, 1)
    else at += 1
  }
}

function once (condition) {
  return new Promise((resolve) => {
    waiting.push(() => {
      const found = condition()
      if (found) resolve(found)
      return found
    })
    look()
  })
}

function received (topic, payload, packet) {
  const given = packet.properties || {}
  const properties = {}
  if (given.userProperties) {
    properties.user = Object.entries(given.userProperties).flatMap(([name, values]) =>
      [values].flat().map((value) => [name, value]))
  }
  if (given.responseTopic) properties.response = given.responseTopic
  if (given.correlationData) properties.correlation = given.correlationData.toString()
  messages.push({ topic, payload: payload.toString(), qos: packet.qos, retain: packet.retain, properties })
  look()
}

function sent (given) {
  const properties = {}
  if (given.user) {
    properties.userProperties = {}
    for (const [name, value] of given.user) (properties.userProperties[name] ||= []).push(value)
  }
  if (given.response) properties.responseTopic = given.response
  if (given.correlation) properties.correlationData = Buffer.from(given.correlation)
  return properties
}

// The client's part of SCRAM-SHA-256.
class Scram {
  constructor ([name, password]) {
    this.password = password
    this.nonce = crypto.randomBytes(12).toString('hex')
    this.bare = `n=${name},r=${this.nonce}`
  }

  properties (text) {
    return { authenticationMethod: 'SCRAM-SHA-256', authenticationData: Buffer.from(text) }
  }

  first () {
    return this.properties(`n,,${this.bare}`)
  }

  last (packet) {
    const asked = packet.properties.authenticationData.toString()
    const [nonce, salt, iterations] = asked.split(',').map((part) => part.slice(2))
    const hmac = (key, text) => crypto.createHmac('sha256', key).update(text).digest()
    const key = crypto.pbkdf2Sync(this.password, Buffer.from(salt, 'base64'), +iterations, 32, 'sha256')
    const client = hmac(key, 'Client Key')
    const stored = crypto.createHash('sha256').update(client).digest()
    const message = `${this.bare},${asked},c=biws,r=${nonce}`
    const signature = hmac(stored, message)
    const proof = client.map((octet, at) => octet ^ signature[at]).toString('base64')
    this.verifier = `v=${hmac(hmac(key, 'Server Key'), message).toString('base64')}`
    return this.properties(`c=biws,r=${nonce},p=${proof}`)
  }

  // Whether the server knows the password, too.
  isProven (connack) {
    return connack.properties.authenticationData.toString() === this.verifier
  }
}

const DOES = {
  async connect (login) {
    const isLatest = login.version === 5
    const scram = login.scram && new Scram(login.scram)
    let refusal = null
    client = mqtt.connect({
      host: login.host,
      port: login.port,
      clientId: login.client_id,
      clean: login.clean,
      protocolVersion: login.version,
      protocolId: login.version === 3 ? 'MQIsdp' : 'MQTT',
      reconnectPeriod: 300,
      properties: isLatest
        ? { ...(!login.clean && { sessionExpiryInterval: KEPT_S }), ...scram?.first() }
        : undefined,
      will: login.will || undefined
    })
    client.handleAuth = (packet, answer) =>
      answer(null, { cmd: 'auth', reasonCode: 0x18, properties: scram.last(packet) })
    client.on('connect', (connack) => {
      if (scram && !scram.isProven(connack)) refusal = new Error('the server has not proven itself')
      connections += 1
      if (login.handler) client.subscribe(login.handler, { qos: 1 })
      look()
    })
    client.on('message', received)
    client.on('error', (error) => {
      if (scram) refusal = error
      look()
    })
    await once(() => connections || refusal)
    if (refusal) throw refusal
  },
  async subscribe ({ filter, qos }) {
    await client.subscribeAsync(filter, { qos })
  },
  async publish ({ message }) {
    const { topic, payload, qos, retain } = message
    await client.publishAsync(topic, payload, { qos, retain, properties: sent(message.properties) })
  },
  async message () {
    await once(() => messages.length)
    return messages.shift()
  },
  async await ({ count }) {
    await once(() => connections >= count)
  },
  async leave () {
    await client.endAsync()
  }
}

readline.createInterface({ input: process.stdin }).on('line', async (line) => {
  let answer
  try {
    const request = JSON.parse(line)
    answer = (await DOES[request.do](request)) || {}
  } catch (error) {
    answer = { error: String(error) }
  }
  process.stdout.write(JSON.stringify(answer) + '\n')
}).on('close', () => process.exit(0))
