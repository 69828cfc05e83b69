package console

import (
	"context"
	"fmt"
	"io"
	"net"
)

// TCP is a serial port behind a console server, in raw mode (ser2net, a
// terminal server's raw port): the bytes of the line and nothing else.
type TCP struct {
	Address string `hcl:"address" doc:"host:port of the raw console port"`
}

// Check refuses an address without a port.
func (c *TCP) Check() error {
	host, port, err := net.SplitHostPort(c.Address)
	if err != nil || host == "" || port == "" {
		return fmt.Errorf("address = %q: want host:port", c.Address)
	}
	return nil
}

// Open connects. TCP keepalives, on by default, find a console server that died.
func (c *TCP) Open(ctx context.Context) (io.ReadWriteCloser, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", c.Address)
	if err != nil {
		return nil, fmt.Errorf("console server: %w", err)
	}
	return conn, nil
}
