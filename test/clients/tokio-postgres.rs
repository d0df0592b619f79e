// The block of docs/clients.md, called as run asks for.  Prints "done", or "refused" and the SQLSTATE.
use std::env;
use tokio_postgres::{Client, Config, Error, NoTls};

// BLOCK

async fn connect(config: Config) -> Result<Client, Error> {
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn write(client: &Client) -> Result<(), Error> {
    client.execute("UPDATE batch SET state = 'settled' WHERE batch_id = 9921", &[]).await?;
    Ok(())
}

async fn guarded(client: &Client, token: i64) -> Result<(), Error> {
    let (key, changes) = (r#"{"batch_id": 9921}"#, r#"{"state": "settled"}"#);
    client.execute(
        "SELECT lockfence.guarded_update('batch', $1::text::jsonb, $2::text::jsonb, $3::bigint)",
        &[&key, &changes, &token],
    ).await?;
    Ok(())
}

// Without the cast of a token: an error of the driver, which has no SQLSTATE.
async fn uncast(client: &Client, token: i64) -> Result<(), Error> {
    client.execute("SELECT lockfence.present($1, $2)", &[&"settle:batch-9921", &token]).await?;
    Ok(())
}

async fn call(client: &mut Client, what: &str, token: i64) -> Result<(), Error> {
    match what {
        "takeover" => take_over(client, token).await,
        "settle" => settle(client, token).await,
        "guarded" => guarded(client, token).await,
        "uncast" => uncast(client, token).await,
        _ => write(client).await,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let what = env::args().nth(1).unwrap();
    let token = env::args().nth(2).unwrap().parse().unwrap();
    let mut config = Config::new();
    config.host(&env::var("PGHOST").unwrap()).port(env::var("PGPORT").unwrap().parse().unwrap());
    config.user(&env::var("PGUSER").unwrap()).dbname(&env::var("PGDATABASE").unwrap());
    let mut client = if what == "granted" { connect_granted(config, token).await? } else { connect(config).await? };
    match call(&mut client, &what, token).await {
        Ok(()) => println!("done"),
        Err(e) => match e.code() {
            Some(state) => {
                println!("refused {}", state.code());
                client.execute("SELECT 1", &[]).await?;
            }
            None => println!("{e}"),
        },
    }
    Ok(())
}
