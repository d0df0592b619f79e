// The block of docs/clients.md, called as run asks for.  Prints "done", or "refused" and the SQLSTATE.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
)

// BLOCK

func write(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "UPDATE batch SET state = 'settled' WHERE batch_id = 9921")
	return err
}

func guarded(ctx context.Context, conn *pgx.Conn, token int64) error {
	_, err := conn.Exec(ctx, "SELECT lockfence.guarded_update('batch', $1, $2, $3)",
		`{"batch_id": 9921}`, []byte(`{"state": "settled"}`), token)
	return err
}

func call(ctx context.Context, conn *pgx.Conn, what string, token int64) error {
	switch what {
	case "takeover":
		return takeOver(ctx, conn, token)
	case "settle":
		return settle(ctx, conn, token)
	case "guarded":
		return guarded(ctx, conn, token)
	}
	return write(ctx, conn)
}

func connect(ctx context.Context, what string, token int64) (*pgx.Conn, error) {
	if what == "granted" {
		return connectGranted(ctx, "", token)
	}
	return pgx.Connect(ctx, "")
}

func main() {
	ctx := context.Background()
	token, _ := strconv.ParseInt(os.Args[2], 10, 64)
	conn, err := connect(ctx, os.Args[1], token)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = call(ctx, conn, os.Args[1], token)
	var e *pgconn.PgError
	if err == nil {
		fmt.Println("done")
	} else if errors.As(err, &e) {
		fmt.Println("refused", e.Code)
		if _, err = conn.Exec(ctx, "SELECT 1"); err != nil {
			fmt.Println(err)
		}
	} else {
		fmt.Println(err)
	}
}
