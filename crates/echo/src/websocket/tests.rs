#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

/// The examples of RFC 6455, sections 1.3 and 5.7.
#[tokio::test]
async fn the_examples_of_the_protocol() {
    assert_eq!(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    let hello = Frame::new(Opcode::Text, "Hello");
    let plain = [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];
    let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    for (mask, bytes) in [(None, &plain[..]), (Some([0x37, 0xfa, 0x21, 0x3d]), &masked[..])] {
        let mut written = Vec::new();
        write(&mut written, &hello, mask).await.unwrap();
        assert_eq!(written, bytes);
        assert_eq!(read(&mut &*bytes).await.unwrap(), Some(hello.clone()));
    }
    let first_fragment = [0x01, 0x03, 0x48, 0x65, 0x6c];
    let read_back = read(&mut &first_fragment[..]).await.unwrap().unwrap();
    assert_eq!(read_back, Frame { fin: false, opcode: Opcode::Text, payload: b"Hel".to_vec() });
}

#[tokio::test]
async fn every_length_of_length() {
    for size in [0, 125, 126, 65535, 65536, LONGEST] {
        let frame = Frame::new(Opcode::Binary, vec![7; size]);
        let mut written = Vec::new();
        write(&mut written, &frame, Some([1, 2, 3, 4])).await.unwrap();
        assert!(read(&mut &written[..]).await.unwrap() == Some(frame), "{size} bytes");
    }
}

#[tokio::test]
async fn what_is_no_frame_is_refused() {
    let too_long = [0x82, 127, 0, 0, 0, 0, 0, 0x10, 0, 1];
    for (bytes, reason) in
        [(&[0x83, 0][..], "unknown frame"), (&[0xc1, 0][..], "frame of an extension"), (&too_long, "frame too long")]
    {
        assert_eq!(read(&mut &*bytes).await.unwrap_err().to_string(), reason);
    }
    assert_eq!(read(&mut &[][..]).await.unwrap(), None);
}
