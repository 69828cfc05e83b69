package targets

// CannotError says that a driver has no way to do what was asked, however
// often it is tried: Wake-on-LAN cannot switch off. Recovery takes the next means
// instead of a retry.
type CannotError struct {
	What string // "power off"
	Why  string // and what to do about it
}

// Error names what cannot be done, and why.
func (e *CannotError) Error() string { return e.What + ": " + e.Why }

// Owner is a driver that holds things of which only one target can make use: a
// serial port, the port of a console server, a MAC address.
type Owner interface {
	// Owns lists them, spelt alike for alike whatever driver holds them:
	// "console labpi:2001". The configuration refuses one in two targets.
	Owns() []string
}
