// node pg-boss.js setup | send | work
const PgBoss = require('pg-boss')
const { run, say } = require('./job.js')

const { PGHOST, PGPORT, PGUSER, PGDATABASE } = process.env
const QUEUE = 'settle'

async function main (command) {
	const working = command === 'work'
	const boss = new PgBoss({
		host: PGHOST, port: +PGPORT, user: PGUSER, database: PGDATABASE, max: 3,
		supervise: working, maintenanceIntervalSeconds: 1, schedule: false, migrate: command === 'setup'
	})
	boss.on('error', error => say('error', error.message))
	await boss.start()
	if (command === 'setup') await boss.createQueue(QUEUE, { retryLimit: 10, retryDelay: 0 })
	if (command === 'send') await boss.send(QUEUE, {})
	if (!working) return boss.stop({ graceful: false })
	say('ready')
	await boss.work(QUEUE, { includeMetadata: true, pollingIntervalSeconds: 0.5 },
		([job]) => run(`pg-boss:${job.name}:${job.id}`, String(job.retryCount), job.id))
}

main(process.argv[2])
