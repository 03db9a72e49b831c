// Command bare measures the limit of an API server on net/http. It answers every GET with the bytes of another server's
// first response, over HTTP/2 and TLS, and does nothing else. A load generator that runs against both shows the share
// of the server's own work. It does not store a merge patch of spec.counter, but only sends it as an event to the
// watches of the collection.
//
//	bare -kubeconfig FILE -write-kubeconfig FILE
//
// It is not a proxy: it never requests a response again.
package main

import (
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func main() {
	from := flag.String("kubeconfig", "", "kubeconfig of the server to record")
	to := flag.String("write-kubeconfig", "", "where to write the kubeconfig of this one")
	flag.Parse()
	if err := run(*from, *to); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	config, err := clientcmd.BuildConfigFromFlags("", from)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	var kept sync.Map // URI and Accept -> answer
	var watches hub
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			watches.watch(w, r)
			return
		}
		key := r.RequestURI + " " + r.Header.Get("Accept")
		a, ok := kept.Load(key)
		if !ok {
			fresh, err := ask(client, config.Host+r.RequestURI, r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			a, _ = kept.LoadOrStore(key, fresh)
		}
		if r.Method == http.MethodPatch {
			watches.patch(w, r, a.(*answer))
			return
		}
		a.(*answer).write(w)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	own := clientcmdapi.NewConfig()
	own.Clusters["bare"] = &clientcmdapi.Cluster{Server: s.URL, CertificateAuthorityData: ca}
	own.AuthInfos["bare"] = &clientcmdapi.AuthInfo{}
	own.Contexts["bare"] = &clientcmdapi.Context{Cluster: "bare", AuthInfo: "bare"}
	own.CurrentContext = "bare"
	if err := clientcmd.WriteToFile(*own, to); err != nil {
		return err
	}
	log.Printf("answers like %s at %s", config.Host, s.URL)
	select {}
}

// answer is the response to one request.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

func ask(client *http.Client, url string, r *http.Request) (*answer, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodPatch {
		return nil, fmt.Errorf("%s is not answered here", r.Method)
	}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", r.Header.Get("Accept"))
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return &answer{resp.StatusCode,
			http.Header{"Content-Type": resp.Header["Content-Type"], "Content-Length": {strconv.Itoa(len(body))}},
			body},
		nil
}

func (a *answer) write(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.code)
	w.Write(a.body) // an error means that the client has left
}
