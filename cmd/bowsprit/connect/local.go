package connect

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// local returns the local server with a data directory.
func local(dir string) (*Server, error) {
	file, err := KubeconfigOf(dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%s cannot be read: run this command as the server's user, or name another server with "+
			"--name, --data-dir, --kubeconfig or --context: %w", file, fs.ErrPermission)
	}
	if !Exists(file) {
		return nil, fmt.Errorf("no server has written %s: start one with \"bowsprit up\" or \"bowsprit serve\", or name "+
			"its directory with --data-dir, or another server with --kubeconfig or --context%s", file, unusedContext())
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w: move the file away, and the next start of the server makes it again",
			unreadable(file, err))
	}
	s, err := newServer(config, config.CurrentContext)
	if err != nil {
		return nil, unreadable(file, err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	s.DataDir = dir
	if dir != DefaultDataDir() {
		s.flags = " --data-dir=" + Quote(dir)
	}
	return s, nil
}

// unusedContext mentions kubectl's current context, which selects no server by itself.
func unusedContext() string {
	config, err := kubectlRules().Load()
	if err != nil || config.CurrentContext == "" {
		return ""
	}
	return fmt.Sprintf("; kubectl's current context is used only if you add --context=%s", Quote(config.CurrentContext))
}

// Running returns an error if the server does not accept connections. It does not look at a server behind a proxy.
func (s *Server) Running(ctx context.Context) error {
	if s.proxied() {
		return nil
	}
	err := reach(ctx, s.Config.Host)
	var name *net.DNSError
	switch refused := errors.Is(err, syscall.ECONNREFUSED); {
	case !s.Local() && (refused || errors.As(err, &name) && name.IsNotFound):
		return fmt.Errorf("the server %s cannot be reached: %w: check its URL in the kubeconfig, and that it runs", s,
			Reason(err))
	case !refused:
		return nil // the first request returns a better error
	}
	serve := "bowsprit serve"
	switch {
	case s.Instance != "":
		serve = "bowsprit up " + s.Instance
	case s.DataDir != DefaultDataDir():
		serve += " --data-dir=" + Quote(s.DataDir)
	}
	return fmt.Errorf("the server %s does not run: start it with \"%s\", or name another server with --name, "+
		"--data-dir, --kubeconfig or --context%s", s, serve, unusedContext())
}

// proxied reports whether requests to the server pass a proxy, of the kubeconfig or of the environment.
func (s *Server) proxied() bool {
	proxy := s.Config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	r, err := http.NewRequest(http.MethodGet, s.Config.Host, http.NoBody)
	if err != nil {
		return false
	}
	through, err := proxy(r)
	return err != nil || through != nil
}

// Reason returns the reason of an error about a connection, without the words about the request and the connection.
func Reason(err error) error {
	var name *net.DNSError
	if errors.As(err, &name) {
		return errors.New(name.Err)
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return syscall.ECONNREFUSED
	}
	return err
}

// reach opens a connection to the server with a URL, and closes it.
func reach(ctx context.Context, server string) error {
	u, err := url.Parse(server)
	if err != nil {
		return err
	}
	dialer := net.Dialer{Timeout: time.Second} // longer than a machine needs to refuse a connection to itself
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")))
	if err != nil {
		return err
	}
	return conn.Close()
}

// LocalCluster returns the local server with a data directory, from its kubeconfig, or nil.
func LocalCluster(dir string) *clientcmdapi.Cluster {
	file, err := KubeconfigOf(dir)
	if err != nil {
		return nil
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil || config.Contexts[config.CurrentContext] == nil {
		return nil
	}
	return config.Clusters[config.Contexts[config.CurrentContext].Cluster]
}

// OffersAnother reports whether a kubeconfig has a context of a server other than this user's local one.
func OffersAnother(config *clientcmdapi.Config) bool {
	own := LocalCluster(DefaultDataDir())
	for _, context := range config.Contexts {
		if !SameServer(own, config.Clusters[context.Cluster]) {
			return true
		}
	}
	return false
}

// SameServer reports whether two clusters of kubeconfigs, which may be nil, are one server: the same URL, connection
// settings and authority. A server restored from another server's backup shares only the authority, and a port
// forwarded to another server only the URL.
func SameServer(a, b *clientcmdapi.Cluster) bool {
	if a == nil || b == nil {
		return false
	}
	authority := authorityOf(a)
	return len(authority) > 0 && bytes.Equal(authority, authorityOf(b)) && a.Server == b.Server &&
		a.TLSServerName == b.TLSServerName && a.ProxyURL == b.ProxyURL &&
		!a.InsecureSkipTLSVerify && !b.InsecureSkipTLSVerify
}

// authorityOf returns the authority's certificates, or nil.
func authorityOf(cluster *clientcmdapi.Cluster) []byte {
	if len(cluster.CertificateAuthorityData) > 0 || cluster.CertificateAuthority == "" {
		return cluster.CertificateAuthorityData
	}
	data, err := os.ReadFile(cluster.CertificateAuthority)
	if err != nil {
		return nil
	}
	return data
}
