package pki

import (
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestKubeconfigIsReadByClientGo(t *testing.T) {
	t.Parallel()
	p := open(t, Config{}, start)
	config, err := clientcmd.RESTConfigFromKubeConfig(p.Kubeconfig("https://[::1]:6443"))
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM := p.Admin()
	if config.Host != "https://[::1]:6443" || string(config.CAData) != string(p.ServerCA()) ||
		string(config.CertData) != string(certPEM) || string(config.KeyData) != string(keyPEM) {
		t.Errorf("read back %v", config)
	}
}
