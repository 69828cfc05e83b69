package power

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bougou/go-ipmi/pkg/client"
	"github.com/bougou/go-ipmi/pkg/command/chassis"
	"github.com/bougou/go-ipmi/pkg/types"
)

// IPMI switches a server through its BMC by IPMI 2.0 over LAN (lanplus). The
// chassis status is read back until it says so: BMCs acknowledge first.
type IPMI struct {
	Address string `hcl:"address" doc:"name or address of the BMC, with :port where it is not 623"`
	Login
	Cipher    int           `hcl:"cipher_suite,optional" doc:"3 or 17 (default: 17, then 3)"`
	Privilege string        `hcl:"privilege,optional" doc:"\"operator\" (default) or \"administrator\": what the session asks for; a BMC may refuse more than the user has"`
	Deadline  time.Duration `hcl:"deadline,optional" doc:"the chassis status must say so within this (default 50s)"`
}

const (
	ipmiDeadline = 50 * time.Second
	ipmiAnswer   = 2 * time.Second // to one datagram
	ipmiTries    = 3               // more, of a datagram
	ipmiUser     = 16              // bytes (IPMI 2.0, section 22.28)
	ipmiPassword = 20              // bytes (section 22.30)
)

// Check refuses what names no BMC.
func (d *IPMI) Check() error {
	if _, _, err := splitAddress(d.Address, "623"); err != nil {
		return err
	}
	if d.User == "" {
		return fmt.Errorf("user and password_env are missing: a BMC switches for nobody else")
	}
	if len(d.User) > ipmiUser {
		return fmt.Errorf("user is longer than the %d bytes that IPMI knows", ipmiUser)
	}
	if err := d.Login.check(); err != nil {
		return err
	}
	if d.Cipher != 0 && d.Cipher != 3 && d.Cipher != 17 {
		return fmt.Errorf("cipher_suite = %d: want 3 or 17; the others leave out what protects the session", d.Cipher)
	}
	if _, ok := privileges()[d.Privilege]; !ok {
		return fmt.Errorf("privilege = %q: want \"operator\" or \"administrator\"", d.Privilege)
	}
	return notNegative(d.Deadline)
}

func privileges() map[string]types.PrivilegeLevel {
	return map[string]types.PrivilegeLevel{
		"": types.PrivilegeLevelOperator, "operator": types.PrivilegeLevelOperator, "administrator": types.PrivilegeLevelAdministrator,
	}
}

// Outlet names the BMC; it has one system.
func (d *IPMI) Outlet() (strip, outlet string) {
	host, port, err := splitAddress(d.Address, "623")
	if err != nil {
		return "", ""
	}
	return stripName(host, port, "623"), onlySystem
}

// Set switches unless the state is right already, and reads it back.
func (d *IPMI) Set(ctx context.Context, on bool) error {
	ctx, stop := limit(ctx, orUsual(d.Deadline, ipmiDeadline))
	defer stop()
	return failed(ctx, on, "IPMI "+d.Address, d.set(ctx, on))
}

func (d *IPMI) set(ctx context.Context, on bool) error {
	password, err := d.password()
	if err != nil {
		return err
	}
	if len(password) > ipmiPassword {
		return fmt.Errorf("the password is longer than the %d bytes that IPMI knows: give the BMC's user a shorter one", ipmiPassword)
	}
	done := false
	err = again(ctx, func(ctx context.Context) error {
		return d.session(ctx, password, func(c *client.Client) error {
			is, err := status(ctx, c)
			if err != nil || is == on {
				done = err == nil
				return err
			}
			return control(ctx, c, on)
		})
	})
	if err != nil || done {
		return err
	}
	// A session of its own for each reading: some BMCs forget theirs meanwhile.
	return confirm(ctx, on, func(ctx context.Context) (is bool, err error) {
		err = d.session(ctx, password, func(c *client.Client) (err error) { is, err = status(ctx, c); return err })
		return is, err
	})
}

// session logs in, works and logs out.
func (d *IPMI) session(ctx context.Context, password string, work func(*client.Client) error) error {
	host, port, err := splitAddress(d.Address, "623")
	if err != nil {
		return err
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	c, err := client.NewClient(host, n, d.User, password)
	if err != nil {
		return err
	}
	suites := []types.CipherSuiteID{types.CipherSuiteID17, types.CipherSuiteID3}
	if d.Cipher != 0 {
		suites = []types.CipherSuiteID{types.CipherSuiteID(d.Cipher)}
	}
	c.WithTimeout(ipmiAnswer).WithRetry(ipmiTries).WithCipherSuiteID(suites...).WithMaxPrivilegeLevel(privileges()[d.Privilege])
	defer func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		_ = c.Close(ctx) // a session that stays ends by itself after a minute
	}()
	if err := c.Connect(ctx); err != nil {
		return ipmiError("logging in", err)
	}
	return work(c)
}

func status(ctx context.Context, c *client.Client) (bool, error) {
	s, err := c.GetChassisStatus(ctx)
	if err != nil {
		return false, ipmiError("reading the chassis status", err)
	}
	return s.PowerIsOn, nil
}

func control(ctx context.Context, c *client.Client, on bool) error {
	what := chassis.ChassisControlPowerDown
	if on {
		what = chassis.ChassisControlPowerUp
	}
	if _, err := c.ChassisControl(ctx, what); err != nil {
		return ipmiError("chassis control", err)
	}
	return nil
}

// ipmiError makes one line of the library's many, and says what it most likely
// means. What is no refusal is worth another try.
func ipmiError(doing string, err error) error {
	said := strings.Join(strings.Fields(err.Error()), " ")
	hint := ""
	switch low := strings.ToLower(said); {
	case strings.Contains(low, "rakp") && (strings.Contains(low, "authentication failed") || strings.Contains(low, "unauthorized name") || strings.Contains(low, "invalid role")):
		return fmt.Errorf("%s: it refuses user or password, or the user lacks the privilege: %.300s", doing, said)
	case strings.Contains(low, "privilege"):
		return fmt.Errorf("%s: the user lacks the privilege: %.300s", doing, said)
	case strings.Contains(low, "timeout") || strings.Contains(low, "no datagram") || strings.Contains(low, "refused"):
		hint = " (is IPMI over LAN enabled there, and the address right?)"
	}
	return &lostError{fmt.Errorf("%s: no answer that counts%s: %.300s", doing, hint, said)}
}
