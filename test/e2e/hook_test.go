package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// object is decoded JSON.
type object = map[string]any

// hook is the conversion webhook of the versioning page: CronTabs of v1beta1 have hostPort, CronTabs of v1 host and
// port. Below /mutate and /validate it is an admission webhook. The contents of the file hook-mode in dir make it
// misbehave.
type hook struct {
	*httptest.Server
	dir string
	ca  string // base64 of PEM, as in a definition
}

func startHook(t *testing.T, dir string) *hook {
	h := &hook{dir: dir}
	h.Server = httptest.NewUnstartedServer(h)
	authority, certificate := certify(t, "example-conversion-webhook-server.default.svc", "policy.policy-system.svc",
		"127.0.0.1")
	h.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.EnableHTTP2 = true
	h.StartTLS()
	t.Cleanup(h.Close)
	h.ca = base64.StdEncoding.EncodeToString(authority)
	return h
}

// port returns the port that the webhook listens on.
func (h *hook) port() string { return fmt.Sprint(h.Listener.Addr().(*net.TCPAddr).Port) }

// certify returns an authority, PEM, and a certificate that it signed for names.
func certify(t *testing.T, names ...string) ([]byte, tls.Certificate) {
	t.Helper()
	now := time.Now()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hook"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(24 * time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// ServeHTTP answers reviews of both kinds.
func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/mutate", "/validate":
		h.admit(w, r)
	default:
		h.convert(w, r)
	}
}

// admit answers an AdmissionReview: /mutate adds labels to objects without labels, /validate refuses data with the key
// forbidden.
func (h *hook) admit(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			UID    string `json:"uid"`
			Object struct {
				Metadata object `json:"metadata"`
				Data     object `json:"data"`
			} `json:"object"`
			Operation string `json:"operation"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if mode, _ := os.ReadFile(filepath.Join(h.dir, "hook-mode")); strings.TrimSpace(string(mode)) == "status 503" {
		http.Error(w, "out of order", http.StatusServiceUnavailable)
		return
	}
	q, response := &review.Request, object{"uid": review.Request.UID, "allowed": true}
	switch {
	case r.URL.Path == "/mutate" && q.Operation == "CREATE" && q.Object.Metadata["labels"] == nil:
		response["patchType"] = "JSONPatch"
		response["patch"] = []byte(
			`[{"op":"add","path":"/metadata/labels","value":{"policy.example.com/seen":"true"}}]`)
	case r.URL.Path == "/validate" && q.Object.Data["forbidden"] != nil:
		response["allowed"], response["status"] = false,
			object{"code": http.StatusForbidden, "message": "data.forbidden is forbidden"}
	case r.URL.Path == "/validate" && q.Object.Data["odd"] != nil:
		response["warnings"] = []string{"data.odd is odd"}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
	})
}

// convert answers a ConversionReview, and records in the file hook-calls the number of objects and the version.
func (h *hook) convert(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Request    struct {
			UID               string   `json:"uid"`
			DesiredAPIVersion string   `json:"desiredAPIVersion"`
			Objects           []object `json:"objects"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if calls, err := os.OpenFile(filepath.Join(h.dir, "hook-calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY,
		0o644); err == nil {
		fmt.Fprintf(calls, "%d to %s\n", len(review.Request.Objects), review.Request.DesiredAPIVersion)
		calls.Close()
	}
	mode, _ := os.ReadFile(filepath.Join(h.dir, "hook-mode"))
	uid, result, objects := review.Request.UID, object{"status": "Success"}, []object{}
	for _, obj := range review.Request.Objects {
		if err := moveHostPort(obj, review.Request.DesiredAPIVersion); err != nil {
			result = object{"status": "Failure", "message": err.Error()}
			objects = nil
			break
		}
		objects = append(objects, obj)
	}
	meta := object{}
	if len(objects) > 0 {
		meta, _ = objects[0]["metadata"].(object)
	}
	switch strings.TrimSpace(string(mode)) {
	case "failure":
		result = object{"status": "Failure", "message": "hostPort could not be parsed into a separate host and port"}
	case "failure without words":
		result = object{"status": "Failure"}
	case "no response":
		fmt.Fprintf(w, `{"apiVersion":"%s","kind":"ConversionReview"}`, review.APIVersion)
		return
	case "another call":
		uid = "another"
	case "no objects":
		objects = nil
	case "too many objects":
		objects = append(objects, objects...)
	case "another version":
		objects[0]["apiVersion"] = "example.com/v2"
	case "another kind":
		objects[0]["kind"] = "Other"
	case "another name":
		meta["name"] = "other"
	case "another namespace":
		meta["namespace"] = "other"
	case "another uid":
		meta["uid"] = "other"
	case "no metadata":
		delete(objects[0], "metadata")
	case "bad label":
		meta["labels"] = object{"a": "not a label!"}
	case "label":
		meta["labels"] = object{"converted": "true"}
		meta["finalizers"] = []string{"example.com/ignored"}
	case "garbage":
		fmt.Fprint(w, "<html>it works</html>")
		return
	case "empty":
		return
	case "status 500":
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	case "moved":
		http.Redirect(w, r, "https://elsewhere.example.com/", http.StatusPermanentRedirect)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object{"apiVersion": review.APIVersion, "kind": "ConversionReview",
		"response": object{"uid": uid, "result": result, "convertedObjects": objects}})
}

// moveHostPort is the conversion.
func moveHostPort(obj object, to string) error {
	obj["apiVersion"] = to
	if strings.HasSuffix(to, "/v1beta1") {
		if obj["host"] != nil || obj["port"] != nil {
			obj["hostPort"] = fmt.Sprintf("%v:%v", obj["host"], obj["port"])
		}
		delete(obj, "host")
		delete(obj, "port")
		return nil
	}
	if hostPort, ok := obj["hostPort"].(string); ok {
		host, port, ok := strings.Cut(hostPort, ":")
		if !ok {
			return fmt.Errorf("hostPort could not be parsed into a separate host and port")
		}
		obj["host"], obj["port"] = host, port
	}
	delete(obj, "hostPort")
	return nil
}
