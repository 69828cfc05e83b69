// Command kernsweep runs kernel and scheduler sweeps over the targets of a lab,
// proves which kernel each figure belongs to, and reports in the morning.
package main

import (
	"context"
	"os"
)

func main() {
	d := asDetached()
	s, ctx, stop := newSignals(context.Background(), os.Stderr, d != nil, os.Exit)
	a := &app{signals: s, detached: d}
	if d != nil {
		a.pipes = keepPipes() // the parent may be gone before it is told
	}
	status := a.main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv)
	stop()
	os.Exit(status)
}
