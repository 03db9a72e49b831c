package kubelet

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/bowsprit/bowsprit/internal/request/invalid"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// maxRefusal bounds the part of a kubelet's error response that is read.
const maxRefusal = 50000

// logOptions parses the query of a log request. As in Kubernetes, every boolean value is valid.
func logOptions(query url.Values) (*corev1.PodLogOptions, error) {
	o := &corev1.PodLogOptions{
		Container: query.Get("container"), Follow: truth(query, "follow"), Previous: truth(query, "previous"),
		Timestamps: truth(query, "timestamps"),

		InsecureSkipTLSVerifyBackend: truth(query, "insecureSkipTLSVerifyBackend"),
	}
	for _, number := range []struct {
		name string
		to   **int64
	}{{"sinceSeconds", &o.SinceSeconds}, {"tailLines", &o.TailLines}, {"limitBytes", &o.LimitBytes}} {
		if values := query[number.name]; len(values) > 0 {
			if err := runtime.Convert_Slice_string_To_Pointer_int64(&values, number.to, nil); err != nil {
				return nil, err
			}
		}
	}
	if values := query["sinceTime"]; len(values) > 0 {
		if err := metav1.Convert_Slice_string_To_Pointer_v1_Time(&values, &o.SinceTime, nil); err != nil {
			return nil, err
		}
	}
	if values := query["stream"]; len(values) > 0 {
		o.Stream = &values[0]
	}
	return o, nil
}

// check validates the options. Without the feature gate, stream cannot be chosen.
func (y *connector) check(o *corev1.PodLogOptions) (errs field.ErrorList) {
	if o.TailLines != nil && *o.TailLines < 0 {
		errs = append(errs,
			field.Invalid(field.NewPath("tailLines"), *o.TailLines, "must be greater than or equal to 0"))
	}
	if o.LimitBytes != nil && *o.LimitBytes < 1 {
		errs = append(errs, field.Invalid(field.NewPath("limitBytes"), *o.LimitBytes, "must be greater than 0"))
	}
	switch {
	case o.SinceSeconds != nil && o.SinceTime != nil:
		errs = append(errs, field.Forbidden(field.NewPath(""),
			"at most one of `sinceTime` or `sinceSeconds` may be specified"))
	case o.SinceSeconds != nil && *o.SinceSeconds < 1:
		errs = append(errs, field.Invalid(field.NewPath("sinceSeconds"), *o.SinceSeconds, "must be greater than 0"))
	}
	if o.Stream == nil {
		return errs
	}
	if !y.settings.SplitLogs {
		return append(errs, field.Forbidden(field.NewPath("stream"), "may not be specified"))
	}
	switch *o.Stream {
	case corev1.LogStreamAll, corev1.LogStreamStdout, corev1.LogStreamStderr:
	default:
		errs = append(errs, field.NotSupported(field.NewPath("stream"), *o.Stream,
			[]string{corev1.LogStreamAll, corev1.LogStreamStderr, corev1.LogStreamStdout}))
	}
	if *o.Stream != corev1.LogStreamAll && o.TailLines != nil {
		errs = append(errs, field.Forbidden(field.NewPath(""),
			"`tailLines` and specific `stream` are mutually exclusive for now"))
	}
	return errs
}

// serveLog answers with the kubelet's log of a container.
func (y *connector) serveLog(w http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call, _ any) error {
	o, err := logOptions(r.URL.Query())
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	usage := "enforce_tls"
	if o.InsecureSkipTLSVerifyBackend {
		usage = "skip_tls_allowed"
	}
	y.metrics.insecure.WithLabelValues(usage).Inc()
	if y.settings.SplitLogs && o.Stream == nil {
		all := corev1.LogStreamAll
		o.Stream = &all
	}
	if errs := y.check(o); len(errs) > 0 {
		return invalid.New(schema.GroupKind{Kind: "PodLogOptions"}, c.Name, errs)
	}
	pod, err := y.pod(r, v, c)
	if err != nil {
		return err
	}
	name, err := container(o.Container, pod)
	if err != nil {
		return err
	}
	if y.isLocal(pod) {
		return y.localLog(w, r, &logRequest{pod, name, o})
	}
	if pod.Spec.NodeName == "" { // it has no output yet
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if answered, err := y.simulatedLog(w, r, v, &logRequest{pod, name, o}); answered || err != nil {
		return err
	}
	node, err := y.node(r.Context(), v, c, pod.Spec.NodeName)
	if err != nil {
		return err
	}
	resp, err := y.requestLog(r, o, &url.URL{
		Scheme: "https", Host: node.address(), RawQuery: logQuery(o).Encode(),
		Path: fmt.Sprintf("/containerLogs/%s/%s/%s", pod.Namespace, pod.Name, name),
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := refused(resp, c.Name); err != nil {
		return err
	}
	sendLog(w, r, resp.Body, o.Follow)
	return nil
}

// logRequest is the request for a log.
type logRequest struct {
	pod       *corev1.Pod
	container string
	options   *corev1.PodLogOptions
}

// logQuery returns the query for the kubelet.
func logQuery(o *corev1.PodLogOptions) url.Values {
	query := url.Values{}
	for name, set := range map[string]bool{"follow": o.Follow, "previous": o.Previous, "timestamps": o.Timestamps} {
		if set {
			query.Set(name, "true")
		}
	}
	for name, n := range map[string]*int64{
		"sinceSeconds": o.SinceSeconds, "tailLines": o.TailLines, "limitBytes": o.LimitBytes,
	} {
		if n != nil {
			query.Set(name, strconv.FormatInt(*n, 10))
		}
	}
	if o.SinceTime != nil {
		query.Set("sinceTime", o.SinceTime.Format(time.RFC3339))
	}
	if o.Stream != nil {
		query.Set("stream", *o.Stream)
	}
	return query
}

// requestLog requests a log from a kubelet. It ends with the client's request.
func (y *connector) requestLog(r *http.Request, o *corev1.PodLogOptions, where *url.URL) (*http.Response, error) {
	transport := y.verified
	if o.InsecureSkipTLSVerifyBackend {
		transport = y.unverified
	}
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodGet, where.String(), nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("redirects forbidden")
	}}
	resp, err := client.Do(ask)
	if err != nil && strings.Contains(err.Error(), "x509:") {
		y.metrics.failures.Inc()
	}
	return resp, err
}

// refused turns an error response of the kubelet into an error.
func refused(resp *http.Response, name string) error {
	if resp.StatusCode >= http.StatusOK && resp.StatusCode <= http.StatusPartialContent {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	switch resp.StatusCode {
	case http.StatusInternalServerError:
		return apierrors.NewInternalError(errors.New(string(body)))
	case http.StatusBadRequest:
		return apierrors.NewBadRequest(string(body))
	}
	return apierrors.NewGenericServerResponse(resp.StatusCode, "", schema.GroupResource{Resource: "pods/log"}, name,
		string(body), 0, false)
}

// sendLog passes a log on, each piece at once if the client follows it.
func sendLog(w http.ResponseWriter, r *http.Request, log io.ReadCloser, follow bool) {
	if wsstream.IsWebSocketRequest(r) {
		// An error is about a client that has left.
		_ = wsstream.NewReader(log, true, wsstream.NewDefaultReaderProtocols()).Copy(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	_ = control.Flush()
	to := io.Writer(w)
	if follow {
		to = flusher{w, control}
	}
	_, _ = io.Copy(to, log)
}

// flusher sends each piece at once.
type flusher struct {
	io.Writer
	control *http.ResponseController
}

// Write implements io.Writer.
func (f flusher) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err == nil {
		err = f.control.Flush()
	}
	return n, err
}
