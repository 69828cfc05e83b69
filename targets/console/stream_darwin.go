package console

import (
	"time"

	"golang.org/x/sys/unix"
)

// What was sent and is not acknowledged for so long ends a connection (tcp(4)).
const (
	deadOption = unix.TCP_RXT_CONNDROPTIME
	deadUnit   = time.Second
)
