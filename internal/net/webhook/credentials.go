package webhook

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	clientcmdapiv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// Credentials authenticate the server to webhooks: the users of a kubeconfig, which are named after the address of the
// webhook ("host:port", "host" for port 443, "*.domain", "*"). Nil has none. Source: "Authenticate apiservers" in
// "Dynamic Admission Control" of the Kubernetes documentation.
type Credentials struct {
	users map[string]*user
	rest  *user // the user of the current context, for other webhooks; nil if there is none
}

// user is one user. It is immutable, except that its files and the last token can change.
type user struct {
	token, tokenFile string
	name, password   string
	certificate      func() (*tls.Certificate, error) // nil without one
	last             atomic.Pointer[string]           // the token that was last read from the file
}

// ReadCredentials reads a kubeconfig. Files in it are relative to it.
func ReadCredentials(file string) (*Credentials, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var config clientcmdapiv1.Config
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	c := &Credentials{users: map[string]*user{}}
	for i := range config.AuthInfos {
		named := &config.AuthInfos[i]
		if c.users[named.Name], err = newUser(&named.AuthInfo, filepath.Dir(file)); err != nil {
			return nil, fmt.Errorf("%s: user %q: %w", file, named.Name, err)
		}
	}
	for i := range config.Contexts {
		if of := &config.Contexts[i]; of.Name == config.CurrentContext {
			c.rest = c.users[of.Context.AuthInfo]
		}
	}
	return c, nil
}

func newUser(info *clientcmdapiv1.AuthInfo, dir string) (*user, error) {
	within := func(file string) string {
		if file == "" || filepath.IsAbs(file) {
			return file
		}
		return filepath.Join(dir, file)
	}
	u := &user{token: info.Token, tokenFile: within(info.TokenFile), name: info.Username, password: info.Password}
	switch {
	case info.Exec != nil || info.AuthProvider != nil:
		return nil, errors.New("credentials from a program are not supported: use a certificate, a token or a password")
	case info.Impersonate != "":
		return nil, errors.New("impersonation is not supported: use the other user's own credentials")
	case (u.token != "" || u.tokenFile != "") && (u.name != "" || u.password != ""):
		return nil, errors.New("username/password or bearer token may be set, but not both")
	}
	switch cert, key := within(info.ClientCertificate), within(info.ClientKey); {
	case len(info.ClientCertificateData) > 0 && len(info.ClientKeyData) > 0:
		pair, err := tls.X509KeyPair(info.ClientCertificateData, info.ClientKeyData)
		if err != nil {
			return nil, err
		}
		u.certificate = func() (*tls.Certificate, error) { return &pair, nil }
	case cert != "" && key != "": // read for each connection: they may be renewed
		u.certificate = func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(cert, key)
			return &pair, err
		}
	case cert != "" || key != "" || len(info.ClientCertificateData) > 0 || len(info.ClientKeyData) > 0:
		return nil, errors.New("a client certificate and its key belong together, both as files or both as data")
	}
	if u.certificate != nil {
		if _, err := u.certificate(); err != nil {
			return nil, err
		}
	}
	if u.tokenFile != "" {
		if err := u.readToken(); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// to returns the credentials for a URL, nil if there are none.
func (c *Credentials) to(where *url.URL) *user {
	if c == nil {
		return nil
	}
	host, port := where.Hostname(), where.Port()
	if port == "" {
		port = "443"
	}
	if u := c.named(net.JoinHostPort(host, port)); u != nil {
		return u
	}
	if port == "443" {
		if u := c.named(host); u != nil {
			return u
		}
	}
	if u := c.users["*"]; u != nil {
		return u
	}
	return c.rest
}

// named returns the user with the name of a host or of the closest domain around it.
func (c *Credentials) named(host string) *user {
	if u := c.users[host]; u != nil {
		return u
	}
	for _, domain, ok := strings.Cut(host, "."); ok; _, domain, ok = strings.Cut(domain, ".") {
		if u := c.users["*."+domain]; u != nil {
			return u
		}
	}
	return nil
}

// sign adds the credentials to a request.
func (u *user) sign(r *http.Request) {
	switch {
	case u == nil:
	case u.token != "" || u.tokenFile != "":
		r.Header.Set("Authorization", "Bearer "+u.bearer())
	case u.name != "" || u.password != "":
		r.SetBasicAuth(u.name, u.password)
	}
}

// bearer returns the token in the file, which may be renewed; if the file is unreadable, the last token read, else the
// configured one.
func (u *user) bearer() string {
	if u.tokenFile != "" {
		_ = u.readToken() // the last one may still be valid
		if last := u.last.Load(); last != nil {
			return *last
		}
	}
	return u.token
}

// readToken reads the token from the file, and ignores an empty one.
func (u *user) readToken() error {
	data, err := os.ReadFile(u.tokenFile)
	if token := strings.TrimSpace(string(data)); token != "" {
		u.last.Store(&token)
	}
	return err
}

// clientCertificate is for tls.Config.GetClientCertificate, which must return an empty certificate for none.
func (u *user) clientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if u == nil || u.certificate == nil {
		return &tls.Certificate{}, nil
	}
	return u.certificate()
}
