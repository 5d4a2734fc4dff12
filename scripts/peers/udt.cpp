// A file over UDT, one way: udt receive ADDRESS PORT FILE | udt send ADDRESS PORT FILE
//
// The size goes in front, eight octets in the machine's order: both ends run on one machine.
#include <arpa/inet.h>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <udt/udt.h>

// Octets that are handed over at once.
static const int PIECE = 1 << 20;

static int fail(const char *what) {
    std::cerr << what << ": " << UDT::getlasterror().getErrorMessage() << std::endl;
    return 1;
}

static int send_file(UDTSOCKET socket, const sockaddr *to, const char *path) {
    if (UDT::ERROR == UDT::connect(socket, to, sizeof(sockaddr_in))) return fail("connect");
    std::fstream file(path, std::ios::in | std::ios::binary | std::ios::ate);
    const int64_t size = file.tellg();
    if (UDT::ERROR == UDT::send(socket, (const char *)&size, sizeof size, 0)) return fail("send");
    int64_t at = 0;
    if (UDT::sendfile(socket, file, at, size, PIECE) != size) return fail("sendfile");
    // The receiver answers with one octet when it has all.
    char octet;
    if (UDT::recv(socket, &octet, 1, 0) != 1) return fail("recv");
    UDT::close(socket);
    return 0;
}

static int receive_file(UDTSOCKET listener, const sockaddr *at, const char *path) {
    if (UDT::ERROR == UDT::bind(listener, at, sizeof(sockaddr_in))) return fail("bind");
    if (UDT::ERROR == UDT::listen(listener, 1)) return fail("listen");
    UDTSOCKET socket = UDT::accept(listener, nullptr, nullptr);
    if (socket == UDT::INVALID_SOCK) return fail("accept");
    int64_t size = 0;
    for (int have = 0; have < (int)sizeof size;) {
        const int got = UDT::recv(socket, (char *)&size + have, (int)sizeof size - have, 0);
        if (got == UDT::ERROR) return fail("recv");
        have += got;
    }
    std::fstream file(path, std::ios::out | std::ios::binary | std::ios::trunc);
    int64_t from = 0;
    if (UDT::recvfile(socket, file, from, size, PIECE) != size) return fail("recvfile");
    file.flush();
    char octet = 0;
    if (UDT::ERROR == UDT::send(socket, &octet, 1, 0)) return fail("send");
    // Lets the octet go out: the sender closes.
    UDT::recv(socket, &octet, 1, 0);
    UDT::close(socket);
    return 0;
}

int main(int count, char **words) {
    if (count != 5 || (strcmp(words[1], "send") && strcmp(words[1], "receive"))) {
        std::cerr << "usage: udt send|receive ADDRESS PORT FILE" << std::endl;
        return 2;
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)atoi(words[3]));
    if (inet_pton(AF_INET, words[2], &address.sin_addr) != 1) return 2;
    UDT::startup();
    UDTSOCKET socket = UDT::socket(AF_INET, SOCK_STREAM, 0);
    const bool sends = !strcmp(words[1], "send");
    const int status = (sends ? send_file : receive_file)(socket, (const sockaddr *)&address, words[4]);
    UDT::cleanup();
    return status;
}
