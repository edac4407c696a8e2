// Package keypair reads the certificate that a client shows to a server.
package keypair

import "crypto/tls"

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
