package sshconn

import (
	"context"
	"net"
	"strconv"
	"strings"

	"kernsweep/targets"
)

// ProxyCommand begins the address of a machine that is reached by a command of
// the ssh configuration.
const ProxyCommand = "proxycommand "

// Address says where s leads after the user's ssh configuration: host and port of
// each machine on the way, the first to be contacted first, the target last.
// Nothing is contacted and no name is looked up. The error is that of the
// configuration.
func (d *Dialer) Address(ctx context.Context, s targets.SSH) ([]string, error) {
	route, err := d.route(ctx, s)
	if err != nil {
		return nil, err
	}
	var way []string
	if c := route[0].proxyCommand; c != "" {
		way = append(way, ProxyCommand+strings.Join(strings.Fields(c), " "))
	}
	for _, h := range route {
		way = append(way, net.JoinHostPort(strings.ToLower(h.hostName), strconv.Itoa(h.port)))
	}
	return way, nil
}
