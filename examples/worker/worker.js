// A worker of graphile-worker, as it was before there was a fence: `setup` makes the tables and sends a job, `work` pays out.
const fs = require('node:fs')
const { setTimeout: sleep } = require('node:timers/promises')
const { makeWorkerUtils, run, Logger } = require('graphile-worker')
const { Pool } = require('pg')

const logger = new Logger(() => () => {})
const pgPool = new Pool()
pgPool.on('error', error => console.log(error.message))

async function setup () {
  const utils = await makeWorkerUtils({ pgPool, logger })
  await utils.migrate()
  await utils.addJob('settle', { amount: 100 })
  await utils.release()
  await pgPool.end()
}

async function settle ({ amount }, { job }) {
  console.log('reads')
  while (!fs.existsSync(process.env.WORK_DONE)) await sleep(50)
  try {
    await pgPool.query('INSERT INTO payout VALUES ($1, $2)', [job.id, amount])
    console.log('done')
  } catch (error) {
    console.log(`ERROR:  ${error.code}: ${error.message}`)
  }
  process.exit()
}

const work = () => run({
  pgPool,
  logger,
  concurrency: 1,
  noHandleSignals: true,
  pollInterval: 500,
  minResetLockedInterval: 500,
  maxResetLockedInterval: 1000,
  taskList: { settle }
})

if (process.argv[2] === 'setup') setup()
else work()
