// Command kernsweep runs kernel and scheduler sweeps over the targets of a lab,
// proves which kernel each figure belongs to, and reports in the morning.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// After the first signal the default action is back: a second one quits at once.
	context.AfterFunc(ctx, stop)
	status := execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv)
	stop()
	os.Exit(status)
}
