package targets

import (
	"context"
	"fmt"
)

// RejoinConsole watches and records the console of a boot that was proven
// earlier, by a controller that is gone. What was said in between is not there.
// log.Console gets the bytes, log.Note what the console says about itself. The
// error is the console's; without a console block there is nothing to do.
func (t *Target) RejoinConsole(ctx context.Context, k Kernel, log BootLog) error {
	if t.Console == nil {
		return nil
	}
	octx, stop := context.WithTimeout(ctx, t.Timeout.WithDefaults().Exec)
	defer stop()
	rwc, err := t.Console.Open(octx)
	if err != nil {
		return fmt.Errorf("target %s: its console does not open: %w", t.Name, err)
	}
	note := log.Note
	if note == nil {
		note = func(string) {}
	}
	t.watch = startWatch(rwc, watchOptions{Record: log.Console, Note: note, Phase: func(Phase) {}, Fail: func() {}, Wanted: k.Release})
	t.watch.settle()
	if n, ok := rwc.(Noter); ok {
		for _, s := range n.Notes() {
			note("console: " + s)
		}
	}
	return nil
}
