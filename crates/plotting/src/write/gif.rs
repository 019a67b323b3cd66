//! Films as GIF.
use anyhow::{Context as _, Result, ensure};
use gif::{Encoder, EncodingError, Frame, Repeat};

use super::pixels::{self, Pixels};

/// Films are for screens.
const PIXELS_PER_INCH: u32 = 150;

/// How long a frame stands, and the last one, in hundredths of a second.
const SHOWN: u16 = 80;
const LAST_SHOWN: u16 = 240;

/// Frames that follow each other over and over.
pub fn render(svgs: &[String]) -> Result<Vec<u8>> {
    let frames = svgs.iter().map(|svg| pixels::render(svg, PIXELS_PER_INCH)).collect::<Result<Vec<_>>>()?;
    let size = |frame: &Pixels| u16::try_from(frame.width).ok().zip(u16::try_from(frame.height).ok());
    let first =
        frames.first().and_then(size).context("cannot draw the film: it has no frame of a size that fits")?;
    ensure!(
        frames.iter().all(|frame| size(frame) == Some(first)),
        "cannot draw the film: frames differ in size"
    );
    encode(first, &frames).context("cannot draw the film")
}

fn encode((width, height): (u16, u16), frames: &[Pixels]) -> Result<Vec<u8>, EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, width, height, &[])?;
    encoder.set_repeat(Repeat::Infinite)?;
    for (place, pixels) in frames.iter().enumerate() {
        let delay = if place + 1 == frames.len() { LAST_SHOWN } else { SHOWN };
        encoder.write_frame(&Frame { delay, ..Frame::from_rgb(width, height, &pixels.rgb) })?;
    }
    drop(encoder);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file is read again by the decoder of the same crate.
    #[test]
    fn frames_follow_each_other_and_the_last_stands_longest() {
        let svg = |color: &str| {
            format!(
                r#"<svg width="1in" height="0.5in" viewBox="0 0 600 300" xmlns="http://www.w3.org/2000/svg"><rect width="600" height="300" fill="{color}"/></svg>"#
            )
        };
        let bytes = render(&[svg("#ff0000"), svg("#0000ff")]).unwrap();
        let mut options = gif::DecodeOptions::new();
        options.set_color_output(gif::ColorOutput::RGBA);
        let mut decoder = options.read_info(&bytes[..]).unwrap();
        assert_eq!((decoder.width(), decoder.height(), decoder.repeat()), (150, 75, Repeat::Infinite));
        let mut found = Vec::new();
        while let Some(frame) = decoder.read_next_frame().unwrap() {
            found.push((frame.delay, frame.buffer[..3].to_vec()));
        }
        assert_eq!(found, [(SHOWN, vec![255, 0, 0]), (LAST_SHOWN, vec![0, 0, 255])]);
        assert!(render(&[]).is_err() && render(&[svg("#fff"), svg("#fff").replace("0.5in", "1in")]).is_err());
    }
}
