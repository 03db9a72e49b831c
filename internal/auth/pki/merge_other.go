package pki

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ErrOtherServer is the error of Merge if a file has entries of the same names for another server. A context of the
// user's would lead to this server in its place.
var ErrOtherServer = errors.New("belongs to another server")

// otherServer returns ErrOtherServer if ours would replace entries of another server, which has neither the URL nor the
// authority of ours.
func otherServer(there, ours *clientcmdapi.Config) error {
	return otherServerUnless(func(string, string) bool { return false }, there, ours)
}

// otherServerNow is otherServer for a server that writes its kubeconfig at each start. Entries of an earlier run on
// this machine, with another port and another authority, are replaced, unless the user has given their context another
// name.
func otherServerNow(there, ours *clientcmdapi.Config) error {
	left := func(context, server string) bool {
		return loopback(server) && (context == ContextName || strings.HasSuffix(context, "@"+ContextName))
	}
	return otherServerUnless(left, there, ours)
}

// otherServerUnless is otherServer, but for contexts, with the URL of their server, for which replaceable is true.
func otherServerUnless(replaceable func(context, server string) bool, there, ours *clientcmdapi.Config) error {
	for _, name := range slices.Sorted(maps.Keys(there.Contexts)) {
		c := there.Contexts[name]
		server := there.Clusters[c.Cluster]
		touched := ours.Contexts[name] != nil || ours.Clusters[c.Cluster] != nil || ours.AuthInfos[c.AuthInfo] != nil
		if touched && server != nil && !leadsTo(ours, server) && !replaceable(name, server.Server) {
			return fmt.Errorf("context %q %w, %s", name, ErrOtherServer, server.Server)
		}
	}
	return nil
}

// leadsTo reports whether a cluster of a kubeconfig has the URL of the other one, or its authority.
func leadsTo(config *clientcmdapi.Config, other *clientcmdapi.Cluster) bool {
	for _, c := range config.Clusters {
		if c.Server == other.Server || bytes.Equal(c.CertificateAuthorityData, other.CertificateAuthorityData) {
			return true
		}
	}
	return false
}

// loopback reports whether a URL leads to this machine.
func loopback(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && address.IsLoopback()
}
