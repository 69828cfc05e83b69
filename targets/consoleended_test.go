package targets

import (
	"net"
	"testing"
	"time"
)

// Who waits for the end of a console is told, and a target without one has none.
func TestConsoleEnded(t *testing.T) {
	here, there := net.Pipe()
	m := &Target{Name: "r1"}
	if m.ConsoleEnded() != nil {
		t.Error("a console that is not recorded has an end")
	}
	m.watch = startWatch(here, watchOptions{Note: func(string) {}, Phase: func(Phase) {}, Fail: func() {}})
	defer m.StopConsole()
	select {
	case <-m.ConsoleEnded():
		t.Fatal("it has ended before it did")
	default:
	}
	there.Close()
	select {
	case <-m.ConsoleEnded():
	case <-time.After(10 * time.Second):
		t.Error("nobody was told")
	}
}
