package console

import (
	"time"

	"golang.org/x/sys/unix"
)

// What was sent and is not acknowledged for so long ends a connection (tcp(7)).
const (
	deadOption = unix.TCP_USER_TIMEOUT
	deadUnit   = time.Millisecond
)
