// The job that both libraries run: it says that it has started, waits to be told to write, writes under the token that
// its grant was issued, and says what came of it.  One line a message, by standard input and output.
const readline = require('node:readline')
const { Client } = require('pg')

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]()

const say = (...words) => console.log(words.join(' '))

// FENCED=no is the job as it was before: it knows of no token.
async function write (resource, owner, job) {
	const client = new Client()
	await client.connect()
	try {
		await client.query('BEGIN')
		if (process.env.FENCED !== 'no') await client.query('SELECT lockfence.present_as($1, $2)', [resource, owner])
		await client.query('INSERT INTO payout (job, worker) VALUES ($1, $2)', [job, process.env.WORKER])
		await client.query('COMMIT')
		say('written')
	} finally {
		await client.end()
	}
}

// What to do with LF001 is given by ON_STALE: it leaves the handler (throw), is swallowed (return), or ends the process (exit).
async function run (resource, owner, job) {
	say('started', owner)
	await lines.next()
	try {
		await write(resource, owner, job)
	} catch (error) {
		say('refused', error.code)
		if (process.env.ON_STALE === 'exit') process.exit(1)
		if (process.env.ON_STALE !== 'return') throw error
	}
}

module.exports = { run, say }
