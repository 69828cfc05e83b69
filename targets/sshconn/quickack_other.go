//go:build !linux

package sshconn

import "net"

// quickAck is nil: only Linux has TCP_QUICKACK.
func quickAck(net.Conn) func() { return nil }
