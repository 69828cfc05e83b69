package localconn

import (
	"context"
	"errors"
	"testing"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

func TestConformance(t *testing.T) {
	targetstest.RunConn(t, func(*testing.T) targets.Conn { return New() })
}

func TestCloseEndsCommands(t *testing.T) {
	c := New()
	started := make(chan struct{})
	ended := make(chan error)
	go func() {
		_, err := c.Run(context.Background(), targets.Cmd{Argv: []string{"sh", "-c", "echo up; sleep 100; :"}, Stdout: signal{started}})
		ended <- err
	}()
	<-started
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	var link *targets.LinkError
	if err := <-ended; !errors.As(err, &link) {
		t.Errorf("ended with %v; want a link error", err)
	}
}

type signal struct{ c chan struct{} }

func (s signal) Write(p []byte) (int, error) {
	close(s.c)
	return len(p), nil
}
