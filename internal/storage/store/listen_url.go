package store

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// CheckListenURL validates --etcd-listen-client-url. A process that reaches that socket may read and write everything,
// without TLS or password, so the socket must be local to this machine.
func CheckListenURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" || u.User != nil || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("--etcd-listen-client-url %q is not a URL such as http://127.0.0.1:2379", text)
	}
	if _, err := strconv.ParseUint(u.Port(), 10, 16); err != nil {
		return fmt.Errorf("--etcd-listen-client-url %q has no port from 0 to 65535: add one, as in http://127.0.0.1:2379",
			text)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); u.Hostname() != "localhost" &&
		(err != nil || !ip.Unmap().IsLoopback()) {
		return fmt.Errorf(
			"--etcd-listen-client-url %q could be reached from other machines, without TLS: use 127.0.0.1, and a "+
				"tunnel from elsewhere", text)
	}
	return nil
}
