// node graphile-worker.js setup | send | work
const { makeWorkerUtils, run: runWorker, Logger } = require('graphile-worker')
const { run, say } = require('./job.js')

const connectionString = `postgres:///${process.env.PGDATABASE}`
const logger = new Logger(() => () => {})

async function withUtils (use) {
	const utils = await makeWorkerUtils({ connectionString, logger })
	await use(utils)
	await utils.release()
}

async function main (command) {
	if (command === 'setup') return withUtils(utils => utils.migrate())
	if (command === 'send') return withUtils(utils => utils.addJob('settle', {}))
	say('ready')
	await runWorker({
		connectionString,
		logger,
		concurrency: 1,
		noHandleSignals: true,
		pollInterval: 500,
		minResetLockedInterval: 500,
		maxResetLockedInterval: 1000,
		taskList: {
			settle: (payload, { job }) => run(`graphile-worker:${job.id}`, `${job.locked_by}:${job.revision}:${job.attempts}`, job.id)
		}
	})
}

main(process.argv[2])
