// The block of docs/clients.md, called as run asks for.  Prints "done", or "refused" and the SQLSTATE.
const { Pool } = require('pg')

// BLOCK

const write = pool => pool.query("UPDATE batch SET state = 'settled' WHERE batch_id = 9921")

const guarded = (pool, token) => pool.query("SELECT lockfence.guarded_update('batch', $1, $2, $3)",
  [{ batch_id: 9921 }, '{"state": "settled"}', token])

async function main (what, token) {
  const pool = what === 'granted' ? grantedPool(token) : new Pool({ max: 1 })
  try {
    await { takeover: takeOver, settle, granted: write, environment: write, guarded }[what](pool, token)
    console.log('done')
  } catch (error) {
    console.log('refused', error.code)
    await pool.query('SELECT 1')
  }
  await pool.end()
}

main(...process.argv.slice(2))
