package targets

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// ServeFunc makes files of the controller readable by TFTP at listen (host:port),
// name -> path, until the Serving is released: ctx bounds the call only. Lanes
// share the server of an address.
type ServeFunc func(ctx context.Context, listen string, files map[string]string) (*Serving, error)

// Serving is files that boot loaders can read now.
type Serving struct {
	Addr      netip.AddrPort    // where the server listens
	Release   func()            // ends it; may be called again
	Transfers func() []Transfer // of these files, and requests for names that nobody serves, oldest first
	Changed   <-chan struct{}   // has an element after a transfer has ended
}

// Transfer is what one client fetched, or tried to.
type Transfer struct {
	Name   string // as it is served; of an unknown one, as it was asked for
	Client netip.AddrPort
	Size   int64 // of the file, bytes
	Sent   int64 // bytes that the client has confirmed
	Took   time.Duration
	Resent int    // packets sent again
	Done   bool   // the whole file arrived
	Asked  bool   // the client took the size only, and went away
	Failed string // why it ended early, also in the client's words; "" while it runs or is done
}

// String says what happened in a line.
func (t Transfer) String() string {
	c := t.Client.Addr().Unmap()
	again := ""
	if t.Resent > 0 {
		again = fmt.Sprintf(", %d packets sent again", t.Resent)
	}
	took := max(t.Took, time.Millisecond).Round(time.Millisecond)
	switch {
	case t.Done:
		return fmt.Sprintf("%s fetched %s, %s in %s%s", c, t.Name, size(t.Size), took, again)
	case t.Asked:
		return fmt.Sprintf("%s asked for the size of %s", c, t.Name)
	case t.Size < 0:
		return fmt.Sprintf("%s asked for %q: %s", c, t.Name, t.Failed)
	case t.Failed != "":
		return fmt.Sprintf("%s got %s of %s (%s) in %s%s, then: %s", c, size(t.Sent), t.Name, size(t.Size), took, again, t.Failed)
	}
	return fmt.Sprintf("%s has %s of %s (%s) after %s%s", c, size(t.Sent), t.Name, size(t.Size), took, again)
}

func size(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// Fetched says whether client, or with the zero Addr anyone, has all of the
// named files.
func (s *Serving) Fetched(client netip.Addr, names ...string) bool {
	all := s.Transfers()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(t Transfer) bool {
			return t.Done && t.Name == name && (!client.IsValid() || t.Client.Addr() == client)
		}) {
			return false
		}
	}
	return true
}

// mostFacts bounds what a boot's record says of its transfers.
const mostFacts = 20

// Facts tells for the record of a boot what was fetched. main is the file without
// which nothing starts, the kernel.
func (s *Serving) Facts(main string) []string {
	var facts []string
	all := s.Transfers()
	asked, mainAsked := false, false
	for _, t := range all {
		mainAsked = mainAsked || t.Name == main
		asked = asked || t.Size >= 0
	}
	for _, t := range all {
		if t.Size < 0 && mainAsked {
			continue // loaders look for optional files of all kinds
		}
		if len(facts) == mostFacts {
			facts = append(facts, fmt.Sprintf("TFTP: and %d transfers more", len(all)-mostFacts))
			break
		}
		facts = append(facts, "TFTP: "+t.String())
	}
	if !mainAsked {
		why := fmt.Sprintf("does the loader use this server's address, and does a firewall let UDP to %s through?", s.Addr)
		if asked || strings.Join(facts, "") != "" {
			why = "the loader reached this server but asked for other files"
		}
		facts = append(facts, fmt.Sprintf("TFTP: nobody asked for %s at %s: %s", main, s.Addr, why))
	}
	return facts
}
