package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/bowsprit/bowsprit/internal/storage/format"
)

// etcd requests the health of each member of an external cluster.
func (e *examination) etcd(ctx context.Context) {
	s := e.Settings
	if len(s.EtcdServers) == 0 {
		return
	}
	client, err := etcdClient(s.EtcdCA, s.EtcdCert, s.EtcdKey)
	if err != nil {
		e.add("etcd", Problem, "correct --etcd-cafile, --etcd-certfile and --etcd-keyfile", "%v", err)
		return
	}
	checked := false
	for _, server := range s.EtcdServers {
		server = strings.TrimSuffix(server, "/")
		answer, body, err := get(ctx, client, server+"/health")
		switch {
		case err != nil:
			e.add("etcd", Problem, "start it, or correct --etcd-servers, the network or the certificates", "%v", err)
		case answer.StatusCode != http.StatusOK || !strings.Contains(body, `"true"`):
			e.add("etcd", Problem, "see etcdctl endpoint status and etcdctl alarm list", "%s: %s %s", server,
				answer.Status, strings.TrimSpace(body))
		default:
			e.add("etcd", OK, "", "%s is healthy", server)
			if !checked {
				checked = true
				e.etcdFormat(ctx, client, server)
			}
		}
	}
}

// etcdFormat checks that this program can read the format of the data in an external cluster. It uses the JSON API of
// etcd's gateway. If the cluster has no gateway or demands a password, etcdFormat reports nothing.
func (e *examination) etcdFormat(ctx context.Context, client *http.Client, server string) {
	g := &gateway{client: client, server: server, prefix: e.Settings.EtcdPrefix}
	found, err := g.page(ctx, []byte(format.Key(e.Settings.EtcdPrefix)), nil)
	if err != nil {
		return
	}
	e.gateway = g
	if len(found) == 0 {
		return // no server has recorded a format: data of kube-apiserver, of an earlier version, or none
	}
	mark, err := format.Parse(found[0].Value)
	if err == nil {
		err = mark.Check("the data in etcd below " + e.Settings.EtcdPrefix)
	}
	e.format(mark, err)
}

func etcdClient(caFile, certFile, keyFile string) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		data, err := os.ReadFile(caFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%s contains no PEM certificate", caFile)
		}
	}
	if certFile != "" {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}, nil
}
