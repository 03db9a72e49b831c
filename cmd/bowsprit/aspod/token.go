package aspod

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// token is a token of the pod's ServiceAccount.
type token struct {
	text  string
	renew time.Time
}

// tokenSeconds is the life of a token if the manifest sets none.
const tokenSeconds = 3600

// token returns a token for an audience, "" for the API server. It requests a new one when 80 % of the life of the last
// one have passed, as a kubelet does.
func (p *pod) token(ctx context.Context, client kubernetes.Interface, audience string, seconds *int64) (string, error) {
	life := int64(tokenSeconds)
	if seconds != nil {
		life = *seconds
	}
	key, now := fmt.Sprint(life, " ", audience), time.Now()
	if t, ok := p.tokens[key]; ok && now.Before(t.renew) {
		return t.text, nil
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &life}}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	made, err := client.CoreV1().ServiceAccounts(p.namespace).CreateToken(ctx, p.account(), request,
		metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of ServiceAccount %s: %w", p.account(), err)
	}
	left := made.Status.ExpirationTimestamp.Sub(now)
	p.tokens[key] = token{made.Status.Token, now.Add(left * 8 / 10)}
	return made.Status.Token, nil
}

// accountFiles returns the files that a pod finds in accountDir.
func (p *pod) accountFiles(ctx context.Context, client kubernetes.Interface) (content, error) {
	text, err := p.token(ctx, client, "", nil)
	return content{"token": text, "ca.crt": string(p.ca), "namespace": p.namespace}, err
}
