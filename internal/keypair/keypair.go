// Package keypair reads the certificates that a client shows to a server and trusts.
package keypair

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Config returns a copy of base, which may be nil, with what the files say that are named: the
// certificates to trust instead of the system's, and that of the client with its key, as Files reads it.
func Config(base *tls.Config, ca, cert, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if base != nil {
		c = base.Clone()
	}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca: there is no certificate in %s", ca)
		}
	}
	if cert != "" || key != "" {
		read, err := Files(cert, key)
		if err != nil {
			return nil, fmt.Errorf("cert and key: %w", err)
		}
		c.GetClientCertificate = read
	}
	return c, nil
}

// Files returns a tls.Config.GetClientCertificate that reads the certificate and its key
// from these files at each handshake, so that a certificate that is renewed there is used
// from the next connection on. It fails if they cannot be read now.
func Files(cert, key string) (func(*tls.CertificateRequestInfo) (*tls.Certificate, error), error) {
	read := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, err
		}
		return &pair, nil
	}
	_, err := read(nil)
	return read, err
}
